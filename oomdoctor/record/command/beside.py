"""Processes of our own beside the command: they live no longer than the wrapper and hold nothing of the command's."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

from oomdoctor.record.command.signals import die_with_parent


class Beside:
    """A process that writes to the wrapper through a pipe. Where none can be made, `pid` is None and nothing comes."""

    def __init__(self, live: Callable[[int, int], None]) -> None:
        """Start it: `live` gets the number of the wrapper and the end of the pipe to write to."""
        self.pid: int | None = None
        self.reader, writer = os.pipe()
        parent = os.getpid()
        try:
            self.pid = os.fork()
        except (OSError, AttributeError):  # no more processes are allowed, or there is no fork
            os.close(writer)
            return
        if self.pid == 0:
            _live(live, parent, self.reader, writer)
        os.close(writer)
        os.set_blocking(self.reader, False)

    def kill(self) -> None:
        """End it and take its status."""
        pid, self.pid = self.pid, None
        if pid is None:
            return
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        with suppress(OSError):
            os.close(self.reader)


def _live(live: Callable[[int, int], None], parent: int, reader: int, writer: int) -> None:
    try:
        die_with_parent()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # a pipe must not stay open because of us
            os.dup2(null, stream)
        os.close(reader)
        if os.getppid() == parent:
            live(parent, writer)
    finally:
        os._exit(0)


def let_go() -> None:
    """Close what we were given beside standard error, and put nothing in the place of input and output.

    Whoever reads or writes at the other end must see when the command closes its own. What we opened ourselves is not inherited by
    anybody, which tells it apart.
    """
    for handle in _open_handles():
        with suppress(OSError):
            if handle > 2 and os.get_inheritable(handle):
                os.close(handle)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1) if _is_open(2) else (0, 1, 2):
        if stream != null:
            os.dup2(null, stream)
    if null > 2:
        os.close(null)


def _open_handles() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []


def _is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True
