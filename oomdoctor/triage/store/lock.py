"""Allows only one triage at a time in a store: the system releases the lock when its processes end, however they end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from oomdoctor.errors import UsageError

try:
    import fcntl
except ImportError:  # not on Windows, where two simultaneous triages are not detected
    fcntl = None  # type: ignore[assignment]

_PATIENCE = 3.0
"""In seconds: how long the last part of a triage that was just killed may take."""


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Hold the lock in the file `path`. Raise UsageError if another triage, or a process left by one, is working there."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        until = time.monotonic() + _PATIENCE
        while not _take(handle):
            if time.monotonic() > until:
                raise UsageError(f"another triage is running in {os.path.dirname(path)}: wait for it, or choose another --store")
            time.sleep(0.05)
        yield
    finally:
        os.close(handle)


def share(path: str) -> int | None:
    """Share the lock with the triage that this process works for, and return its handle; None if that triage has ended."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    if _lock(handle, exclusively=False):
        return handle
    os.close(handle)
    return None


def _take(handle: int) -> bool:
    """Take the lock if it is free, then hold it in a way that the triage's processes can share."""
    return _lock(handle, exclusively=True) and _lock(handle, exclusively=False)


def _lock(handle: int, *, exclusively: bool) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if exclusively else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
