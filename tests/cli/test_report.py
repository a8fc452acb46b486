"""`oomdoctor report` and `diagnose --reply`: what goes out, in which form, with which exit status."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_process import Done, oomdoctor

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.69 GiB of which 1.02 GiB is free."


def run(*arguments: str, text: str = "", **environ: str) -> Done:
    return oomdoctor(arguments, text=text, environ=environ)


@pytest.mark.parametrize("command", [["report"], ["report", "--for", "plain"], ["diagnose", "--reply"]])
@pytest.mark.parametrize(("text", "status"), [(OOM, 1), ("Killed", 1), ("all is well", 0)], ids=["a failure", "a possible one", "none"])
def test_exit_status(command: list[str], text: str, status: int, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(text)
    assert run(*command, str(log)).returncode == status
    assert run(*command, str(log), "--exit-zero").returncode == 0


@pytest.mark.parametrize("arguments", [
    pytest.param(["report", "no-such-file.log"], id="a file that is not there"),
    pytest.param(["report", "-", "--for", "gitlab"], id="an unknown form"),
    pytest.param(["diagnose", "no-such-file.log", "--reply"], id="a file to answer that is not there"),
    pytest.param(["explain", "qwertyuiop"], id="an unknown name"),
])  # fmt: skip
def test_wrong_use_ends_with_two_and_one_clear_message(arguments: list[str]) -> None:
    done = run(*arguments, text=OOM)
    assert done.returncode == 2
    assert done.stderr.strip() and "Traceback" not in done.stderr


def test_names_are_taken_out_unless_asked(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(f'  File "/home/somebody/run.py", line 3, in main\n{OOM}\n')
    assert "somebody" not in run("report", str(log)).stdout + run("diagnose", str(log), "--reply").stdout
    assert "somebody" in run("report", str(log), "--no-redact").stdout


def test_plain_text_has_no_markdown_and_no_escapes() -> None:
    output = run("report", "-", "--for", "plain", text=OOM).stdout
    assert "**" not in output and "<details>" not in output and "\x1b" not in output
    assert "1.02 GiB" in output


@pytest.mark.parametrize(("text", "environ", "arguments", "chinese"), [
    pytest.param(f"请问这是什么原因？\n{OOM}", {}, [], True, id="a Chinese report is answered in Chinese"),
    pytest.param(OOM, {"LANG": "zh_CN.UTF-8"}, [], True, id="a log alone in the language of the locale"),
    pytest.param(f"请问这是什么原因？\n{OOM}", {}, ["--lang", "en"], False, id="unless one is asked for"),
])  # fmt: skip
def test_the_language_of_an_answer(text: str, environ: dict[str, str], arguments: list[str], chinese: bool) -> None:
    assert ("感谢反馈" in run("diagnose", "-", "--reply", *arguments, text=text, **environ).stdout) is chinese


def test_a_file_is_answered_in_its_language(tmp_path: Path) -> None:
    path = tmp_path / "issue.md"
    path.write_text(f"请问这是什么原因？\n```\n{OOM}\n```\n", encoding="utf-8")
    assert "感谢反馈" in run("diagnose", str(path), "--reply").stdout


def test_the_same_text_goes_to_a_file(tmp_path: Path) -> None:
    output = tmp_path / "issue.md"
    assert run("report", "-", "--output", str(output), text=OOM).stdout == ""
    assert output.read_text(encoding="utf-8") == run("report", "-", text=OOM).stdout


@pytest.mark.parametrize("command", ["report", "explain"])
def test_help_shows_examples(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0 and "Examples:" in done.stdout
