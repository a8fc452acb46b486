"""Memory of the run and its machine at a moment."""

from __future__ import annotations

import os
import time

from oomdoctor.record.evidence import Sample
from oomdoctor.record.processes import ProcessTree

_SHM = "/dev/shm"  # noqa: S108 - a place to look at, not to write to
_SLOW, _FAST = 1.0, 0.2
_FIRST = 60.0
_NEAR = 0.1
"""While less than this share of the memory is left, samples come fast."""


class Sampler:
    """Looks again and again. What cannot be read is None."""

    def __init__(self, tree: ProcessTree, folder: str) -> None:
        self._tree, self._folder = tree, folder
        self._began = time.monotonic()

    def sample(self) -> Sample:
        """Return the memory of this moment."""
        rss = self._tree.look()
        available, total = _host()
        return Sample(
            t=round(time.time(), 3),
            rss=rss,
            available=available,
            total=total,
            shm_free=_free(_SHM),
            disk_free=_free(self._folder),
            processes={str(pid): size for pid, size in self._tree.alive().items()},
        )

    def next_in(self, last: Sample) -> float:
        """Return the seconds to the next sample: fewer at first, and near a limit."""
        near = last.available is not None and last.total is not None and last.available < _NEAR * last.total
        return _FAST if near or time.monotonic() - self._began < _FIRST else _SLOW


def _host() -> tuple[int | None, int | None]:
    """Return what the machine has left, and what it has."""
    sizes: dict[bytes, int] = {}
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file.read().splitlines():
                name, _, value = line.partition(b":")
                sizes[name] = int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return sizes.get(b"MemAvailable"), sizes.get(b"MemTotal")


def _free(path: str) -> int | None:
    try:
        figures = os.statvfs(path)
    except (OSError, AttributeError):
        return None
    return figures.f_bavail * figures.f_frsize
