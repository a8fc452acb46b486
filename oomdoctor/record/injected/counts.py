"""The ring of counters that survives SIGKILL. Its form stands in record/ring.py.

A record is written in its place in the file, which is opened for it: what was written stays with the system when the process is
killed. There is no mapping, as a full disk would be SIGBUS then, and no descriptor is kept, as programs close what is not theirs and use
the number again.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Sequence

from .place import open_new

NAMES = (
    "t", "device", "allocated", "allocated_peak", "reserved", "reserved_peak", "active", "active_peak", "requested", "inactive_split",
    "retries", "ooms", "device_allocs", "device_frees", "pinned", "step",
)  # fmt: skip
"""What a record holds, for one device at one moment."""
_MOST_RECORDS, _LEAST_RECORDS = 3600, 120
_ALL_RINGS = 20 << 20
"""Bytes that the rings of a job may take together."""


class CounterRing:
    """The ring of this process."""

    def __init__(self, path: str, pid: int, rank: int | None, world_size: int | None) -> None:
        self._path = path
        self._row = struct.Struct("<%dd" % len(NAMES))
        places = _ALL_RINGS // (self._row.size * max(1, world_size or 1))
        self._places = max(_LEAST_RECORDS, min(_MOST_RECORDS, places))
        head = json.dumps({"names": NAMES, "pid": pid, "rank": rank}).encode("ascii")
        head += b" " * (-len(head) % 8)
        self._written = 0
        self._count_at = 24 + len(head)
        if os.path.lexists(path):  # of a process that had the same number
            os.unlink(path)
        with open_new(path) as file:
            file.write(struct.pack("<8sIIII", b"OOMRING1", len(head), self._places, len(NAMES), 0) + head + struct.pack("<Q", 0))
            file.truncate(self._count_at + 8 + self._places * self._row.size)

    def write(self, numbers: Sequence[float]) -> None:
        """Add a record. The count follows it, so that a record that is cut does not count."""
        place = self._count_at + 8 + self._written % self._places * self._row.size
        descriptor = os.open(self._path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        try:
            _put(descriptor, self._row.pack(*numbers), place)
            _put(descriptor, struct.pack("<Q", self._written + 1), self._count_at)
        finally:
            os.close(descriptor)
        self._written += 1


def _put(descriptor: int, data: bytes, place: int) -> None:
    os.lseek(descriptor, place, os.SEEK_SET)
    if os.write(descriptor, data) != len(data):
        raise OSError("a record was truncated")
