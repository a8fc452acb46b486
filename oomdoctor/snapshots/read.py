"""The bytes of a snapshot -> a recording, without running anything that stands in them.

The opcodes are checked first; then the interpreter's own unpickler, to which no global is given, makes the values. It is fast, and
takes about five bytes of memory for each of the file; `limit_memory` bounds what a hostile file can take.
"""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from oomdoctor.case.gap import Gap
from oomdoctor.snapshots.convert import NotASnapshot, recording
from oomdoctor.snapshots.opcodes import NotReadable, end_of_pickle
from oomdoctor.snapshots.recording import Recording

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MEMORY_PER_BYTE = 6
_LEAST_MEMORY = 64 << 20
_LEAST_SOUND = 64
_REST_OF_A_FRAME = b"\xff" * (1 << 17)
"""The unpickler wants frames whole, which have some 64 KiB; this byte is no opcode, so that it stops there."""
_DAMAGE = (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError, AttributeError, UnicodeDecodeError, OverflowError)
_BEHIND_SEGMENTS = ("device_traces", "allocator_settings", "external_annotations")
_AGAIN = "write the snapshot again and let it end: a process that is killed while it writes leaves a part of the file"


class _NoGlobals(pickle.Unpickler):
    """An unpickler that makes plain values only."""

    def find_class(self, module: str, name: str) -> object:
        """Refuse: a snapshot names no class. Raise UnpicklingError."""
        raise pickle.UnpicklingError(f"{module}.{name} is named")


def read_pickle(data: bytes) -> Recording:
    """Return what a pickled snapshot holds.

    Raise NotReadable where the bytes are no pickle of plain values, and NotASnapshot where the values are none.
    """
    with _without_collection():
        try:
            end_of_pickle(data)
            return recording(_NoGlobals(io.BytesIO(data)).load(), len(data))
        except NotReadable as error:
            return _torn(data, error)
        except _DAMAGE as error:
            raise NotReadable(f"its opcodes do not fit together: {error}") from None


def _torn(data: bytes, damage: NotReadable) -> Recording:
    """Return the state that a file still holds of which the end is missing or damaged.

    torch writes the segments first and the trace behind them. A trace without its end cannot be played back from the state, so it
    is left out. Raise the damage where the state is not whole either.
    """
    if damage.sound < _LEAST_SOUND:
        raise damage
    unpickler: Any = _NoGlobals(io.BytesIO(data[: damage.sound] + _REST_OF_A_FRAME))
    with suppress(*_DAMAGE):
        unpickler.load()
    values = list(unpickler.memo.copy().values())  # what the C unpickler has named so far
    if not any(value in _BEHIND_SEGMENTS for value in values if isinstance(value, str)):
        raise damage
    segments = [value for value in values if isinstance(value, dict) and "total_size" in value]
    return recording({"segments": segments}, len(data), (Gap("the trace", f"the file is damaged or cut off: {damage}", _AGAIN),))


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


def limit_memory(size: int, per_byte: int = MEMORY_PER_BYTE) -> None:
    """Bound what this process may take more to read bytes of a size; only in a process of its own."""
    used = _address_space()
    if resource is not None and used is not None:
        most = used + max(_LEAST_MEMORY, per_byte * size)
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
