"""Run work that may crash or hang in a driver's library, in a process of its own that can be left."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import DecodeError, Struct
from msgspec.msgpack import decode, encode

T = TypeVar("T")

_CHUNK = 1 << 16
_MOST_BYTES = 8 << 20
CAN_FORK = hasattr(os, "fork") and sys.platform != "emscripten"
"""In a browser the function is there and always fails."""


class IsolatedFailure(Struct, frozen=True):
    """The process did not come back."""

    why: str
    """`timeout`, or the name of the signal that ended it."""


class IsolatedProcess(Generic[T]):
    """Work that goes on in a process of its own from now on. `kind` is the type of what it returns."""

    def __init__(self, work: Callable[[], T], kind: type[T], seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._work = work
        self._kind = kind
        self._pid = 0
        if CAN_FORK:
            self._reader, writer = os.pipe()
            self._pid = os.fork()
            if self._pid == 0:
                _run_child(work, self._reader, writer)
            os.close(writer)

    def result(self) -> T | IsolatedFailure:
        """Wait for what the work returns, or how it failed. Where there is no fork it is done here."""
        if not self._pid:
            return self._work()
        data = _read_all(self._reader, self._until)
        os.close(self._reader)
        if data is None:
            _kill(self._pid)
            return IsolatedFailure("timeout")
        _, status = os.waitpid(self._pid, 0)
        if os.WIFSIGNALED(status):
            return IsolatedFailure(_signal_name(os.WTERMSIG(status)))
        try:
            return decode(data, type=self._kind)
        except (DecodeError, UnicodeDecodeError):
            return IsolatedFailure(f"exit status {os.WEXITSTATUS(status)}")


def run_isolated(work: Callable[[], T], kind: type[T], seconds: float) -> T | IsolatedFailure:
    """Run work in a process of its own and wait for it."""
    return IsolatedProcess(work, kind, seconds).result()


def _run_child(work: Callable[[], object], reader: int, writer: int) -> None:
    status = 1
    try:
        os.close(reader)
        # A crashing library writes to these; what it says there is nothing for the person at the terminal.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        data = memoryview(encode(work()))
        while data:
            data = data[os.write(writer, data) :]
        status = 0
    finally:
        os._exit(status)


def _read_all(reader: int, until: float) -> bytes | None:
    data = b""
    while len(data) <= _MOST_BYTES:
        remaining = until - time.monotonic()
        if remaining <= 0 or not select.select([reader], [], [], remaining)[0]:
            return None
        chunk = os.read(reader, _CHUNK)
        if not chunk:
            return data
        data += chunk
    return None


def _kill(pid: int) -> None:
    """End the process. One that waits inside the kernel dies when the kernel lets it; nobody waits for that."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        pass


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
