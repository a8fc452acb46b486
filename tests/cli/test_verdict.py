"""`oomdoctor verdict` as a launcher calls it: one line, one status."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_process import Done, oomdoctor

ENDED = "Traceback (most recent call last):\n  File \"fit.py\", line 3, in main\n    model = AutoModel.from_pretrained(path).to('cuda')\n"
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is "
    "free. Including non-PyTorch memory, this process has 38.20 GiB memory in use. Of the allocated memory 36.60 GiB is allocated by "
    "PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated.\n"
)


def verdict(*arguments: str) -> Done:
    return oomdoctor(["verdict", *arguments])


@pytest.mark.parametrize(("lang", "begins"), [("en", "stop: GPU memory"), ("zh", "stop：显存不足")])
def test_one_line_says_it(tmp_path: Path, lang: str, begins: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(ENDED + MESSAGE)
    done = verdict(str(log), "--exit-codes", "nvrx", "--lang", lang)
    assert (done.returncode, done.stdout.count("\n"), done.stdout[: len(begins)]) == (93, 1, begins)


@pytest.mark.parametrize(("message", "needs"), [
    pytest.param("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", "a larger /dev/shm", id="shared memory"),
    pytest.param("slurmstepd: error: Detected 1 oom_kill event in StepId=771234.0. Some of the step tasks have been OOM Killed.", "more host memory", id="the memory of the host"),
])  # fmt: skip
def test_what_more_memory_means_is_said(tmp_path: Path, message: str, needs: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{message}\n")
    assert f"needs {needs}" in verdict(str(log), "--lang", "en").stdout


def test_a_log_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "r\x1b]0;title\x07un.log"
    log.write_text(ENDED + MESSAGE)
    assert "\x1b" not in verdict(str(log)).stdout


@pytest.mark.parametrize(("scheme", "code"), [("nvrx", 0), ("job", 0), ("plain", 2)])
def test_a_log_that_is_not_there_stops_no_restart(tmp_path: Path, scheme: str, code: int) -> None:
    done = verdict(str(tmp_path / "none.log"), "--exit-codes", scheme)
    assert (done.returncode, "no such file" in done.stderr) == (code, True)


@pytest.mark.parametrize(("text", "code", "says"), [
    pytest.param(ENDED + MESSAGE, 93, "(-:4)", id="a failure"),
    pytest.param("step 1 loss 2.0\nTraining completed.\n", 0, "no memory failure in the log", id="none"),
    pytest.param("", 0, "none of the log could be read", id="nothing"),
])  # fmt: skip
def test_a_log_may_come_from_standard_input(text: str, code: int, says: str) -> None:
    done = oomdoctor(["verdict", "-", "--exit-codes", "nvrx", "--lang", "en"], text=text)
    assert (done.returncode, says in done.stdout, "input.log" in done.stdout + done.stderr) == (code, True, False)
