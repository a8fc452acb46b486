"""The bytes of a snapshot -> a recording; `limit_memory` bounds what a hostile file can take."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from oomdoctor.case.gap import Gap
from oomdoctor.snapshots.convert import NotASnapshot, SnapshotReader, recording
from oomdoctor.snapshots.opcodes import NotReadable, UnpacksTooFar
from oomdoctor.snapshots.pickled.unpickle import Unpickler
from oomdoctor.snapshots.pickled.window import ByteSource
from oomdoctor.snapshots.recording import Recording

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MEMORY_PER_BYTE = 6
_LEAST_MEMORY = 64 << 20
_AGAIN = "write the snapshot again and let it finish: a process killed while writing leaves only part of the file"


def read_pickle(source: ByteSource, size: int) -> Recording:
    """Return what a pickled snapshot holds that has so many bytes.

    Raise NotReadable where the bytes are no pickle of plain values, and NotASnapshot where the values are none.
    """
    with _without_collection():
        reader = SnapshotReader()
        unpickler = Unpickler(source, reader)
        try:
            return recording(unpickler.load(), size, reader)
        except UnpacksTooFar:
            raise
        except NotReadable as damage:
            return _torn(unpickler.so_far(), size, reader, damage)


def _torn(items: Mapping[str, object], size: int, reader: SnapshotReader, damage: NotReadable) -> Recording:
    """Return the state that a file still holds of which the end is missing or damaged.

    torch writes the segments first and the trace behind them. A trace without its end cannot be played back from the state, so it
    is left out. Raise the damage where the state is not whole either.
    """
    if "segments" not in items:
        raise damage
    gap = Gap("the trace", f"it was not read, because the file is damaged or truncated: {damage}", _AGAIN)
    return replace(recording({"segments": items["segments"]}, size, reader, (gap,)), is_cut=True)


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
