"""A process that does nothing but say which signals it gets, to tell those for the wrapper alone from those for all.

`kill -TERM -GROUP`, scancel and systemd signal every process of a job; the command has such a signal, and must not get it twice. What the
canary gets as well was for all. It dies with the wrapper.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Collection
from contextlib import suppress

_SET_PARENT_DEATH_SIGNAL = 1
"""linux/prctl.h"""


class Canary:
    """The process, from the wrapper's side. Its signals must be blocked when it is made."""

    def __init__(self, signals: Collection[int]) -> None:
        self._reader, writer = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _live(parent, self._reader, writer, signals)
        os.close(writer)
        os.set_blocking(self._reader, False)

    def heard(self, number: int, seconds: float) -> bool:
        """Return whether the canary got a signal, too; wait for so long."""
        ready, _, _ = select.select([self._reader], [], [], seconds)
        return bool(ready) and number in os.read(self._reader, 64)

    def kill(self) -> None:
        """End the canary and take its status."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        with suppress(OSError):
            os.close(self._reader)


def _live(parent: int, reader: int, writer: int, signals: Collection[int]) -> None:
    """Say each signal, until the wrapper is gone."""
    try:
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # a pipe must not stay open because of a canary
            os.dup2(null, stream)
        os.close(reader)
        while os.getppid() == parent:
            info = signal.sigtimedwait(signals, 60)
            if info is not None:
                os.write(writer, bytes((info.si_signo,)))
    finally:
        os._exit(0)
