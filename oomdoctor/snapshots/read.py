"""The bytes of a snapshot -> a recording, without running anything that stands in them.

The opcodes are checked first; then the interpreter's own unpickler, to which no global is given, makes the values. It is fast, and
takes about five bytes of memory for each of the file; `limit_memory` bounds what a hostile file can take.
"""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager

from oomdoctor.snapshots.convert import NotASnapshot, recording
from oomdoctor.snapshots.opcodes import NotReadable, end_of_pickle
from oomdoctor.snapshots.recording import Recording

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_MEMORY_PER_BYTE = 6
_LEAST_MEMORY = 64 << 20


class _NoGlobals(pickle.Unpickler):
    """An unpickler that makes plain values only."""

    def find_class(self, module: str, name: str) -> object:
        """Refuse: a snapshot names no class. Raise UnpicklingError."""
        raise pickle.UnpicklingError(f"{module}.{name} is named")


def read_pickle(data: bytes) -> Recording:
    """Return what a pickled snapshot holds.

    Raise NotReadable where the bytes are no pickle of plain values, and NotASnapshot where the values are none.
    """
    end_of_pickle(data)
    with _without_collection():
        try:
            value = _NoGlobals(io.BytesIO(data)).load()
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError, AttributeError, UnicodeDecodeError) as error:
            raise NotReadable(f"its opcodes do not fit together: {error}") from None
        return recording(value)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Make millions of values without looking again and again whether one of them can go."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def limit_memory(size: int) -> None:
    """Bound what this process may take to read a file of a size; for good, so only in a process of its own."""
    used = _address_space()
    if resource is not None and used is not None:
        most = used + max(_LEAST_MEMORY, _MEMORY_PER_BYTE * size)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _address_space() -> int | None:
    if resource is None:
        return None
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


__all__ = ["NotASnapshot", "NotReadable", "limit_memory", "read_pickle"]
