"""The ring in which a process counts its memory: a file that is written in its place, so that it survives SIGKILL.

Layout, little-endian: the magic `OOMRING1`, u32 length of the head, u32 number of records, u32 numbers in a record, u32 nothing; the
head, JSON `{"names": [...], "pid": ..., "rank": ...}` filled up with blanks; u64 count of records written since the start; then the
records, each of f64 numbers. Record n lies at place n modulo their number. NaN is unknown. The writer is record/injected, which stands
on the standard library alone; a test holds both to this page.
"""

from __future__ import annotations

import json
import math
import struct

from msgspec import Struct

MAGIC = b"OOMRING1"
_FIRST = struct.Struct("<8sIIII")
_COUNT = struct.Struct("<Q")
_MOST_NAMES, _MOST_RECORDS, _LONGEST_HEAD = 64, 1 << 13, 1 << 16
"""The writer has 16 names and 3600 records at most; what claims far more is no ring of its."""


class Ring(Struct, frozen=True):
    """What a ring holds, oldest record first."""

    names: tuple[str, ...]
    written: int
    """Records since the start; more than are kept where the oldest were written over."""
    records: tuple[tuple[float | None, ...], ...]

    def column(self, name: str) -> tuple[float | None, ...]:
        """Return one number of every record; all None where the ring does not have it."""
        at = self.names.index(name) if name in self.names else None
        return tuple(None if at is None else record[at] for record in self.records)


def read_ring(data: bytes) -> Ring | None:
    """Return what the bytes of a ring hold; None where they are none."""
    if len(data) < _FIRST.size or not data.startswith(MAGIC):
        return None
    _, head_size, places, width, _ = _FIRST.unpack_from(data)
    start = _FIRST.size + head_size + _COUNT.size
    if (
        not 0 < width <= _MOST_NAMES
        or not 0 < places <= _MOST_RECORDS
        or head_size > _LONGEST_HEAD
        or start + places * width * 8 > len(data)
    ):
        return None
    names = _names(data[_FIRST.size : _FIRST.size + head_size])
    if names is None or len(names) != width:
        return None
    (written,) = _COUNT.unpack_from(data, start - _COUNT.size)
    row = struct.Struct(f"<{width}d")
    order = range(written) if written <= places else ((written + at) % places for at in range(places))
    records = (row.unpack_from(data, start + at * row.size) for at in order)
    return Ring(names, written, tuple(tuple(None if math.isnan(number) else number for number in record) for record in records))


def _names(head: bytes) -> tuple[str, ...] | None:
    try:
        names = json.loads(head)["names"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return tuple(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else None
