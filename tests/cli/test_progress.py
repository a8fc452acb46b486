"""What a person sees while a large log is read; a pipe sees nothing of it."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from oomdoctor.cli import progress


@contextmanager
def terminal() -> Iterator[int]:
    """Standard error is a terminal; what is written to it can be read from this file."""
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as stderr, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        patch.setenv("TERM", "xterm")
        yield master
    os.close(master)


def shown(master: int) -> str:
    os.set_blocking(master, False)
    out = b""
    with suppress(OSError):  # nothing more is there, or the other side is closed
        while piece := os.read(master, 1 << 16):
            out += piece
    return out.decode()


def test_a_bar_with_the_bytes_where_reading_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    with terminal() as master:
        with progress.Progress() as bar:
            bar.read(3 << 20)
            bar.read(2 << 20)
        output = shown(master)
    assert "reading" in output and "5.0/? MiB" in output


def test_no_bar_where_reading_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 3600.0)
    with terminal() as master:
        with progress.Progress() as bar:
            bar.read(3 << 20)
        assert shown(master) == ""


def test_no_bar_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    with progress.Progress() as bar:
        bar.read(3 << 20)
    assert capsys.readouterr().err == ""
