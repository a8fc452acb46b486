"""The command as a stranger uses it: inputs, formats, exit statuses, languages, pipes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import Done, oomdoctor

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.69 GiB of which 1.02 GiB is free."


def program(*arguments: str, text: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in ("LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR")} | environ
    return subprocess.run(
        [sys.executable, "-m", "oomdoctor", *arguments], input=text, capture_output=True, text=True, encoding="utf-8", env=env
    )


def run(*arguments: str, **environ: str) -> Done:
    return oomdoctor(arguments, environ=environ)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "train.log"
    path.write_text(f"step 1\n{OOM}\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("text", "status"), [
    pytest.param(OOM, 1, id="a memory failure"),
    pytest.param("Killed", 1, id="a possible one"),
    pytest.param("all is well", 0, id="nothing"),
    pytest.param("RuntimeError: CUDA error: device-side assert triggered", 0, id="another failure"),
])  # fmt: skip
def test_exit_status(text: str, status: int) -> None:
    assert program("diagnose", "-", text=text).returncode == status
    assert oomdoctor(["diagnose", "-", "--exit-zero"], text=text).returncode == 0


@pytest.mark.parametrize("arguments", [
    pytest.param(["diagnose", "no-such-file.log"], id="a file that is not there"),
    pytest.param(["diagnose", "--format", "xml", "-"], id="an unknown format"),
    pytest.param(["diagnose", "--env", "nowhere.json", "-"], id="an environment file that is not there"),
    pytest.param(["diagnose", "--output", "/no/such/folder/x.md", "-"], id="an output that cannot be written"),
    pytest.param(["unknown"], id="an unknown command"),
    pytest.param(["rules", "show", "no-such-rule"], id="an unknown rule"),
])  # fmt: skip
def test_wrong_use_ends_with_two_and_one_clear_message(arguments: list[str]) -> None:
    done = program(*arguments, text=OOM)
    assert done.returncode == 2
    assert done.stderr.strip() and "Traceback" not in done.stderr


def test_json_is_the_contract(log: str) -> None:
    report = json.loads(run("diagnose", log, "--format", "json").stdout)
    assert report["schema"] == "oomdoctor/report/v1"
    assert report["verdict"]["memory_failure"] == "yes"
    assert report["incidents"][0]["root"]["line"] == 2
    assert report["incidents"][0]["root"]["fields"]["gpu_index"] == 1


@pytest.mark.parametrize(("environ", "arguments", "chinese"), [
    ({"LANG": "zh_CN.UTF-8"}, [], True), ({"LANG": "en_US.UTF-8"}, [], False), ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, [], False),
    ({}, ["--lang", "zh"], True), ({"LANG": "zh_CN.UTF-8"}, ["--lang", "en"], False),
])  # fmt: skip
def test_language(log: str, environ: dict[str, str], arguments: list[str], chinese: bool) -> None:
    assert ("显存" in program("diagnose", log, *arguments, **environ).stdout) is chinese


@pytest.mark.parametrize("format_", ["terminal", "markdown", "json", "html"])
def test_no_colour_in_a_pipe_and_the_same_text_in_a_file(log: str, tmp_path: Path, format_: str) -> None:
    printed = run("diagnose", log, "--format", format_)
    assert "\x1b" not in printed.stdout
    output = tmp_path / "report"
    assert run("diagnose", log, "--format", format_, "--output", str(output)).stdout == ""
    assert output.read_text(encoding="utf-8") == printed.stdout


def test_a_folder_is_one_run_and_sources_in_it_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("fine\n")
    with gzip.open(tmp_path / "rank1.log.gz", "wt") as file:
        file.write(f"[rank1]: {OOM}\n")
    (tmp_path / "train.py").write_text(f'MESSAGE = "{OOM}"\n')
    report = json.loads(run("diagnose", str(tmp_path), "--format", "json").stdout)
    assert [event["source"].rsplit("/", 1)[-1] for event in report["events"]] == ["rank1.log.gz"]
    assert report["incidents"][0]["ranks"] == [1]


def test_include_and_exclude(tmp_path: Path) -> None:
    (tmp_path / "a.err").write_text(OOM)
    (tmp_path / "b.log").write_text("fine")
    assert run("diagnose", str(tmp_path), "--include", "*.log").returncode == 0
    assert run("diagnose", str(tmp_path), "--exclude", "*.err").returncode == 0
    assert run("diagnose", str(tmp_path)).returncode == 1


def test_a_broken_pipe_is_quiet(log: str) -> None:
    command = f"{sys.executable} -m oomdoctor diagnose {log} --format json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_names_are_taken_out_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(f'  File "/home/somebody/run.py", line 3, in main\n{OOM}\n')
    assert "somebody" not in run("diagnose", str(path), "--format", "json").stdout
    assert "somebody" in run("diagnose", str(path), "--format", "json", "--no-redact").stdout


def test_one_unreadable_source_does_not_hide_the_others(log: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.log.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00cut off")
    report = json.loads(run("diagnose", str(broken), log, "--format", "json", "--exit-zero").stdout)
    assert report["verdict"]["memory_failure"] == "yes"
    assert any("broken" in gap["what"] for gap in report["gaps"])


@pytest.mark.parametrize(
    "command", [[], ["diagnose"], ["rules"], ["rules", "list"], ["rules", "show"], ["rules", "test"], ["rules", "new"]]
)
def test_every_command_has_help(command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.returncode == 0
    assert "Usage: oomdoctor" in done.stdout


def test_version() -> None:
    import oomdoctor

    assert program("--version").stdout.startswith(f"oomdoctor {oomdoctor.__version__} (rules ")
