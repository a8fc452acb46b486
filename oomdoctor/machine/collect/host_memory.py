"""RAM, swap, how much may be pinned, and the file systems that runs write to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from msgspec import Struct, convert
from msgspec.structs import replace

from oomdoctor.case.environment import Folder
from oomdoctor.case.gap import Gap
from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.root import Root

_MEMINFO = re.compile(r"^(MemTotal|MemAvailable|SwapTotal|SwapFree):\s{1,40}(\d{1,15}) kB$", re.MULTILINE)
_MEMLOCK = re.compile(r"^Max locked memory\s{1,40}(unlimited|\d{1,20})\s", re.MULTILINE)
_FIELDS = {"MemTotal": "ram_bytes", "MemAvailable": "ram_available_bytes", "SwapTotal": "swap_bytes", "SwapFree": "swap_free_bytes"}

Measure = Callable[[str], "tuple[int, int] | None"]
"""A path -> (bytes of its file system, bytes that a user can still write); None where it cannot be asked."""


class HostMemory(Struct, frozen=True, kw_only=True):
    """The host's memory, as fields of `Host`."""

    ram_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_bytes: int | None = None
    swap_free_bytes: int | None = None
    memlock_bytes: int | None = None
    memlock_unlimited: bool | None = None


def collect_host_memory(root: Root) -> Collected[HostMemory]:
    """Read what Linux says of memory under /proc; a Gap where it is not there."""
    sizes = {_FIELDS[name]: int(size) << 10 for name, size in _MEMINFO.findall(root.read("/proc/meminfo") or "")}
    origins = {f"host.{name}": "/proc/meminfo" for name in sizes}
    gaps = () if sizes else (Gap("memory of the host", "/proc/meminfo cannot be read", "free -b"),)
    memory = convert(sizes, HostMemory)
    limit = _MEMLOCK.search(root.read("/proc/self/limits") or "")
    if limit is None:
        return Collected(memory, origins, gaps)
    unlimited = limit[1] == "unlimited"
    value = replace(memory, memlock_unlimited=unlimited, memlock_bytes=None if unlimited else int(limit[1]))
    return Collected(value, {**origins, "host.memlock_bytes": "/proc/self/limits"}, gaps)


def collect_folder(path: str, name: str, measure: Measure) -> Collected[Folder | None]:
    """Read a file system's size and free space; `name` is its field in `Host`."""
    sizes = measure(path)
    if sizes is None:
        return Collected(None)
    return Collected(Folder(path=path, total_bytes=sizes[0], free_bytes=sizes[1]), {f"host.{name}": "statvfs"})


def measure_file_system(path: str) -> tuple[int, int] | None:
    """Return the size and the free bytes of a path's file system; where there is no such path yet, of the nearest folder above it."""
    path = os.path.abspath(path)
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    try:
        answer = os.statvfs(path)
    except (OSError, AttributeError, ValueError):
        return None
    return answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize
