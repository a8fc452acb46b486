"""Run work that may crash or hang in a driver's library, in a process of its own that can be left."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import DecodeError, Struct
from msgspec.msgpack import decode, encode

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

T = TypeVar("T")

_CHUNK = 1 << 16
_MOST_BYTES = 8 << 20
CAN_FORK = hasattr(os, "fork") and sys.platform != "emscripten"
"""In a browser the function is there and always fails."""


class IsolatedFailure(Struct, frozen=True):
    """The process did not come back."""

    why: str
    """`timeout` where the clock ran out, or the name of the signal that ended it: SIGXCPU where its time of the processor did."""


class IsolatedProcess(Generic[T]):
    """Work that goes on in a process of its own from now on. `kind` is the type of what it returns.

    It may take so many `seconds` of the clock. Where the machine is busy these say little of the work, so `processor_seconds` can
    bound what it takes of the processor.
    """

    def __init__(self, work: Callable[[], T], kind: type[T], seconds: float, processor_seconds: float | None = None) -> None:
        self._until = time.monotonic() + seconds
        self._work = work
        self._kind = kind
        self._pid = 0
        if CAN_FORK:
            self._reader, writer = os.pipe()
            self._pid = os.fork()
            if self._pid == 0:
                _run_child(work, self._reader, writer, processor_seconds)
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


def run_isolated(work: Callable[[], T], kind: type[T], seconds: float, processor_seconds: float | None = None) -> T | IsolatedFailure:
    """Run work in a process of its own and wait for it."""
    return IsolatedProcess(work, kind, seconds, processor_seconds).result()


def _run_child(work: Callable[[], object], reader: int, writer: int, processor_seconds: float | None) -> None:
    status = 1
    try:
        os.close(reader)
        if resource is not None and processor_seconds is not None:
            _limit(resource.RLIMIT_CPU, math.ceil(processor_seconds))
            _limit(resource.RLIMIT_CORE, 0)  # the signal behind the limit would leave one
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


def _limit(what: int, most: int) -> None:
    """Lower a limit of this process; one that is lower already stays."""
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (min(limit for limit in (most, soft, hard) if limit != resource.RLIM_INFINITY), hard))


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
