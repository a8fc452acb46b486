"""A command whose output nobody could read: why it failed stays open, whatever it was, and is never said to be no matter of memory."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from in_process import oomdoctor
from msgspec.json import decode

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what ends a process is seen on Linux alone")

PYTHON = (sys.executable, "-c")
PROGRAMS: dict[str, tuple[str, ...]] = {
    "it catches the error and leaves": (
        *PYTHON,
        "import sys\ntry: bytearray(1 << 46)\nexcept MemoryError: sys.exit('no memory for the data')",
    ),
    "a shell passes on a status": ("bash", "-c", "echo 'CUDA out of memory' >&2; exit 1"),
    "a large status": ("sh", "-c", "echo 'cudaMalloc failed: out of memory' >&2; exit 77"),
    "it aborts, as C++ does when nobody catches bad_alloc": (
        "sh",
        "-c",
        "echo \"terminate called after throwing 'std::bad_alloc'\" >&2; kill -ABRT $$",
    ),
    "it touches a null pointer that malloc gave": ("sh", "-c", "kill -SEGV $$"),
    "an illegal instruction": ("sh", "-c", "kill -ILL $$"),
    "another process of it fails": ("sh", "-c", "sh -c 'echo oom >&2; exit 3'; exit $?"),
    "it left its session": ("setsid", "-w", "sh", "-c", "echo 'out of memory' >&2; exit 4"),
    "it left at once": (*PYTHON, "import os; os._exit(9)"),
    "it exits from a thread": (*PYTHON, "import os, threading; t = threading.Thread(target=lambda: os._exit(2)); t.start(); t.join()"),
}


@contextmanager
def _pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    yield from _drained(reader, writer)


@contextmanager
def _socket() -> Iterator[int]:
    ours, theirs = socket.socketpair()
    yield from _drained(ours.detach(), theirs.detach())


@contextmanager
def _terminal() -> Iterator[int]:
    yield from _drained(*pty.openpty())


def _drained(reader: int, writer: int) -> Iterator[int]:
    """Read what is written, as the other end of a pipe, a service and a terminal do."""
    drain = Thread(target=_read_all, args=(reader,))
    drain.start()
    try:
        yield writer
    finally:
        os.close(writer)
        drain.join()


def _read_all(reader: int) -> None:
    try:
        while os.read(reader, 65536):
            pass
    except OSError:  # what a terminal gives once nobody holds its other side
        pass
    os.close(reader)


PLACES = {"a pipe": _pipe, "a service": _socket, "a terminal": _terminal}


@pytest.mark.parametrize("place", [pytest.param(place, id=name) for name, place in PLACES.items()])
@pytest.mark.parametrize("command", [pytest.param(command, id=name) for name, command in PROGRAMS.items()])
def test_the_verdict_is_open(command: tuple[str, ...], place: Callable[[], Iterator[int]], tmp_path: Path) -> None:
    with place() as writer:  # type: ignore[attr-defined]
        watched = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--level", "0", "--out", str(tmp_path / "run"), "--", *command]
        subprocess.run(watched, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, timeout=600)
    report = decode(oomdoctor(["diagnose", str(tmp_path / "run"), "--format", "json"]).stdout)
    verdict = report["verdict"]
    assert (verdict["memory_failure"], verdict["certainty"]) == ("possible", "possible")
    assert "output was not captured" in verdict["summary"] and "--log" in verdict["settle"]


def test_where_it_was_read_the_reason_counts(tmp_path: Path) -> None:
    with (tmp_path / "out.log").open("wb") as out:
        words = "echo 'KeyError: a key that is missing' >&2; exit 1"
        watched = [
            sys.executable,
            "-m",
            "oomdoctor",
            "run",
            "--quiet",
            "--level",
            "0",
            "--out",
            str(tmp_path / "run"),
            "--",
            "sh",
            "-c",
            words,
        ]
        subprocess.run(watched, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=600)
    assert decode(oomdoctor(["diagnose", str(tmp_path / "run"), "--format", "json"]).stdout)["verdict"]["memory_failure"] == "no"


def test_the_last_line_says_that_nobody_saw_it(tmp_path: Path) -> None:
    with _pipe() as writer:
        watched = [sys.executable, "-m", "oomdoctor", "run", "--out", str(tmp_path / "run"), "--", "sh", "-c", "exit 1"]
        done = subprocess.run(watched, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=600)
    (line,) = done.stderr.splitlines()
    assert "exit code 1; its output was not captured" in line and "--log" in line


@pytest.mark.parametrize("words", [
    pytest.param("oomdoctor run: the command ended by signal 9", id="a signal"),
    pytest.param("oomdoctor run: the kernel killed 1 processes because the machine had no memory left", id="a kill of the kernel"),
    pytest.param("oomdoctor run: /dev/shm was full: 0 of 67108864 bytes were left", id="a full /dev/shm"),
    pytest.param("oomdoctor run: SIGKILL ended the command, and the kernel counted no kill for memory in that time", id="a kill by hand"),
])  # fmt: skip
def test_what_a_program_prints_is_no_testimony_of_the_wrapper(words: str, tmp_path: Path) -> None:
    with (tmp_path / "out.log").open("wb") as out:
        printing = [*PYTHON, f"import sys; print({words!r}); sys.exit(1)"]
        watched = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--level", "0", "--out", str(tmp_path / "run"), "--", *printing]
        subprocess.run(watched, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=600)
    report = decode(oomdoctor(["diagnose", str(tmp_path / "run"), "--format", "json"]).stdout)
    assert report["verdict"]["memory_failure"] == "no" and "SIGKILL" not in report["verdict"]["summary"]
    assert all(event["source"] == "run.json" for event in report["events"] if event["signature"].startswith("watched-"))
    assert oomdoctor(["diagnose", str(tmp_path / "out.log"), "--format", "json"]).stdout.count('"watched-') == 0
