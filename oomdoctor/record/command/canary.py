"""A process that does nothing but say which signals it gets, to tell those for the wrapper alone from those for all.

`kill -TERM -GROUP`, scancel and systemd signal every process of a job; the command has such a signal, and must not get it twice. What the
canary gets as well was for all. It also lets the wrapper go on where that stopped with the command and somebody continued only the command.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection
from functools import partial

from oomdoctor.record.command.beside import Beside
from oomdoctor.record.command.signals import send

_LOOK_EVERY = 1.0
_FRESH = 2.0
"""Seconds for which what was heard belongs to the signal that the wrapper just got."""


class Canary:
    """The process, from the wrapper's side. Its signals must be blocked when it is made."""

    def __init__(self, signals: Collection[int], command: int) -> None:
        self._beside = Beside(partial(_live, signals, command))
        self.pid = self._beside.pid
        self._heard: dict[int, float] = {}

    def heard(self, number: int, seconds: float) -> bool:
        """Return whether the canary got a signal, too; wait for so long."""
        until = time.monotonic() + seconds
        while self.pid is not None:
            now = time.monotonic()
            if now - self._heard.pop(number, -_FRESH) < _FRESH:
                return True
            if now >= until or not select.select([self._beside.reader], [], [], until - now)[0]:
                return False
            data = os.read(self._beside.reader, 64)
            if not data:
                self.pid = None
            self._heard.update(dict.fromkeys(data, time.monotonic()))
        return False

    def kill(self) -> None:
        """End the canary and take its status."""
        self._beside.kill()


def _live(signals: Collection[int], command: int, parent: int, writer: int) -> None:
    """Say each signal, until the wrapper is gone."""
    while os.getppid() == parent:
        info = signal.sigtimedwait(signals, _LOOK_EVERY)
        if info is not None:
            os.write(writer, bytes((info.si_signo,)))
        elif _state(parent) == b"T" and _state(command) not in (b"T", b""):
            send(parent, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped at this moment."""
    return _state(pid) == b"T"


def _state(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(1000).rpartition(b") ")[2][:1]
    except OSError:
        return b""
