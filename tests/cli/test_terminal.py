"""The command among other processes: full disks, closed pipes, Ctrl-C, encodings, narrow terminals, inputs that cannot be read, typing errors."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from in_process import oomdoctor

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.50 GiB of which 1.25 GiB is free."
COMMAND = [sys.executable, "-m", "oomdoctor"]
FULL = Path("/dev/full")


def run(*arguments: str, text: str = "", **environ: str) -> subprocess.CompletedProcess[bytes]:
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LC_ALL", "LANG", "PYTHONIOENCODING")} | environ
    return subprocess.run([*COMMAND, *arguments], input=text.encode(), capture_output=True, env=env, check=False)


def shell(line: str) -> subprocess.CompletedProcess[str]:
    python = f"'{sys.executable}' -m oomdoctor"
    return subprocess.run(["bash", "-c", line.replace("oomdoctor", python)], input=OOM, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("line", [
    pytest.param("oomdoctor diagnose - > /dev/full", id="a report"),
    pytest.param("oomdoctor diagnose - --format json > /dev/full", id="a report for programs"),
    pytest.param("oomdoctor --help > /dev/full", id="the help"),
    pytest.param("oomdoctor rules list > /dev/full", id="a list"),
    pytest.param("oomdoctor diagnose - --output /dev/full", id="a file on a full disk"),
    pytest.param("oomdoctor diagnose - >&-", id="an output that is closed"),
])  # fmt: skip
def test_text_that_cannot_be_written_is_one_line_and_two(line: str) -> None:
    done = shell(line)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("oomdoctor: ") and done.stderr.count("\n") == 1


def test_a_closed_output_does_not_hinder_a_file(tmp_path: Path) -> None:
    done = shell(f"oomdoctor diagnose - --output '{tmp_path / 'report.txt'}' >&-")
    assert (done.returncode, done.stderr) == (1, "")
    assert "2.00 GiB" in (tmp_path / "report.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("line", ["oomdoctor explain", "oomdoctor rules list", "oomdoctor diagnose - --format html"])
def test_a_reader_that_leaves_is_no_error_and_no_finding(line: str) -> None:
    done = shell(f"{line} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_is_one_line_and_130() -> None:
    # A shell's background jobs ignore SIGINT, and what they start does too.
    start = (
        "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); runpy.run_module('oomdoctor', run_name='__main__')"
    )
    call = [sys.executable, "-c", start, "diagnose", "-"]
    process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    # More than a pipe holds: once it is written, the command is reading.
    process.stdin.write(b"a line of a log\n" * 200_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert errors.decode().strip() == "oomdoctor: interrupted"


@pytest.mark.parametrize(("encoding", "language", "said"), [
    pytest.param("gbk", "zh", "显存不足", id="Chinese in GBK"),
    pytest.param("gb18030", "zh", "显存不足", id="Chinese in GB 18030"),
    pytest.param("ascii", "en", "> The message", id="marks that the encoding lacks have a plain form"),
    pytest.param("latin-1", "zh", "2.00 GiB", id="Chinese in an encoding without it"),
])  # fmt: skip
def test_a_report_is_in_the_encoding_of_the_output(encoding: str, language: str, said: str) -> None:
    done = run("diagnose", "-", "--lang", language, text=OOM, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (1, b"")
    assert said in done.stdout.decode(encoding)


@pytest.mark.parametrize("arguments", [["rules", "list"], ["explain", "--lang", "zh"], ["env", "--lang", "zh"]])
def test_no_command_fails_on_an_encoding(arguments: list[str]) -> None:
    done = run(*arguments, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_programs_read_is_utf_8_in_every_encoding() -> None:
    done = run("diagnose", "-", "--lang", "zh", "--format", "json", text=OOM, PYTHONIOENCODING="gbk")
    assert "显存" in json.loads(done.stdout.decode("utf-8"))["verdict"]["summary"]


@pytest.mark.parametrize(
    ("columns", "widest"), [pytest.param(0, 80, id="unknown"), pytest.param(60, 60, id="narrow"), pytest.param(200, 100, id="wide")]
)
def test_lines_are_as_wide_as_the_terminal(tmp_path: Path, columns: int, widest: int) -> None:
    log = tmp_path / "train.log"
    log.write_text(OOM)
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 0, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
    process = subprocess.Popen([*COMMAND, "diagnose", str(log), "--env", "none", "--lang", "en"], stdout=side, stderr=side, env=environ)
    os.close(side)
    text = b""
    while True:
        try:
            text += (part := os.read(main, 1 << 16))
        except OSError:  # Linux tells the end of a terminal so.
            break
        if not part:
            break
    os.close(main)
    assert process.wait() == 1
    lines = text.decode().replace("\r", "").splitlines()
    assert widest - 12 <= max(map(len, lines)) <= widest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log that ends well, one that fails, one that nobody can read (a loop of links), and an empty one."""
    (tmp_path / "well.log").write_text("step 1 loss 2.0\nstep 2 loss 1.5\ndone\n")
    (tmp_path / "oom.log").write_text(OOM)
    (tmp_path / "loop.log").symlink_to("loop.log")
    (tmp_path / "empty.log").write_text("")
    (tmp_path / "weights").write_bytes(bytes(range(128)) * 80)
    (tmp_path / "snapshot").write_bytes(b"\x80\x04}\x94\x8c\x08segments\x94]\x94s.")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "archive.log").write_bytes(b"PK\x03\x04 an archive")
    return tmp_path


@pytest.mark.parametrize(("names", "status", "named"), [
    pytest.param(["well.log"], 0, [], id="all read, no failure"),
    pytest.param(["oom.log", "loop.log"], 1, ["loop.log: "], id="a failure beside what cannot be read"),
    pytest.param(["loop.log", "oom.log"], 1, ["loop.log: "], id="what cannot be read comes first"),
    pytest.param(["oom.log", "gone.log"], 1, ["gone.log: no such file"], id="a failure beside a name that is wrong"),
    pytest.param(["well.log", "gone.log"], 2, ["gone.log: no such file"], id="no failure in what could be read"),
    pytest.param(["well.log", "logs"], 2, ["archive.log: a zip archive"], id="a folder of which not all could be read"),
    pytest.param(["oom.log", "logs"], 1, ["archive.log: a zip archive"], id="the same beside a failure"),
    pytest.param(["loop.log"], 2, ["loop.log: "], id="nothing was read"),
    pytest.param(["empty.log"], 2, ["empty.log: empty"], id="an empty log says nothing"),
    pytest.param(["empty.log", "well.log"], 0, [], id="an empty log beside one that was read"),
    pytest.param(["weights"], 2, ["weights: not text"], id="a file that is no log"),
    pytest.param(["snapshot"], 2, ["oomdoctor snapshot "], id="a snapshot in the place of a log"),
    pytest.param(["weights", "well.log"], 0, [], id="a file that is no log beside one that is"),
])  # fmt: skip
def test_what_cannot_be_read_is_named_and_the_rest_is_diagnosed(folder: Path, names: list[str], status: int, named: list[str]) -> None:
    done = oomdoctor(["diagnose", *(str(folder / name) for name in names), "--format", "json"])
    errors = done.stderr.splitlines()
    assert done.returncode == status
    assert len(errors) == len(named)
    assert all(part in error for part, error in zip(named, errors))
    assert (json.loads(done.stdout)["verdict"]["memory_failure"] == "yes") is ("oom.log" in names)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_without_permission_is_named(folder: Path) -> None:
    (folder / "well.log").chmod(0)
    done = run("diagnose", str(folder / "well.log"), str(folder / "oom.log"))
    assert done.returncode == 1
    assert b"well.log: permission denied" in done.stderr


@pytest.mark.parametrize(("arguments", "meant"), [
    pytest.param(["diagnoze"], "oomdoctor diagnose", id="a letter is wrong"),
    pytest.param(["Diagnose"], "oomdoctor diagnose", id="a capital"),
    pytest.param(["estmate", "x.yaml"], "oomdoctor estimate", id="a letter is missing"),
    pytest.param(["train.log"], "oomdoctor diagnose train.log", id="a log without its command"),
    pytest.param(["logs/run-3"], "oomdoctor diagnose logs/run-3", id="a folder without its command"),
    pytest.param(["-"], "oomdoctor diagnose -", id="standard input without its command"),
    pytest.param(["日志.log"], "oomdoctor diagnose 日志.log", id="a log with a Chinese name"),
    pytest.param(["a\x1b[31m.log"], r"oomdoctor diagnose 'a\x1b[31m.log'", id="a name with escapes of a terminal"),
    pytest.param(["rules", "lst"], "oomdoctor rules list", id="a command of a group"),
])  # fmt: skip
def test_a_mistyped_command_is_answered_with_the_right_one(arguments: list[str], meant: str) -> None:
    done = oomdoctor(arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Did you mean `{meant}`?" in done.stderr


def test_a_word_like_no_command_gets_no_suggestion() -> None:
    assert "Did you mean" not in oomdoctor(["xylophone"]).stderr


LONG = """\
***** Running training *****
  Num examples = 52,002
  Instantaneous batch size per device = 8
  Gradient Accumulation steps = 4
{'loss': 1.92, 'grad_norm': 0.71, 'learning_rate': 2e-05, 'epoch': 0.01}
Traceback (most recent call last):
  File "/opt/train/trainer.py", line 310, in training_step
    loss = self.compute_loss(model, inputs)
  File "/opt/lib/transformers/loss/loss_utils.py", line 36, in fixed_cross_entropy
    loss = nn.functional.cross_entropy(source, target)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 23.64 GiB of which 2.10 GiB is free. \
Including non-PyTorch memory, this process has 21.53 GiB memory in use. Of the allocated memory 20.11 GiB is allocated by PyTorch, and 0.98 GiB \
is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
"""


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("columns", "most"), [("80", 42), ("100", 40)])
def test_a_report_fits_one_screen_and_full_opens_the_rest(language: str, columns: str, most: int) -> None:
    arguments = ["diagnose", "-", "--lang", language, "--env", "none"]
    short = oomdoctor(arguments, text=LONG, environ={"COLUMNS": columns}).stdout
    whole = oomdoctor([*arguments, "--full"], text=LONG, environ={"COLUMNS": columns}).stdout
    assert short.count("\n") <= most < whole.count("\n")
    assert "▸" in short and "--full" in short.splitlines()[-1]
    assert "▸" not in whole and "--full" not in whole


def test_the_same_report_names_the_same_first_step_on_a_screen_and_in_full() -> None:
    short, whole = (oomdoctor(["diagnose", "-", "--env", "none", *more], text=LONG).stdout for more in ([], ["--full"]))
    firsts = [next(line for line in text.splitlines() if line.startswith("  1. ")) for text in (short, whole)]
    assert firsts[0] == firsts[1]
