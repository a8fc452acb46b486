"""RAM, swap, how much may be pinned, and the file systems that runs write to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

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


def memory(root: Root) -> Collected[HostMemory]:
    """What Linux says of memory under /proc; a Gap where it is not there."""
    sizes: dict[str, Any] = {_FIELDS[name]: int(size) << 10 for name, size in _MEMINFO.findall(root.read("/proc/meminfo") or "")}
    origins = {f"host.{name}": "/proc/meminfo" for name in sizes}
    gaps = () if sizes else (Gap("memory of the host", "/proc/meminfo cannot be read", "free -b"),)
    limit = _MEMLOCK.search(root.read("/proc/self/limits") or "")
    if limit is None:
        return Collected(HostMemory(**sizes), origins, gaps)
    unlimited = limit[1] == "unlimited"
    value = HostMemory(**sizes, memlock_unlimited=unlimited, memlock_bytes=None if unlimited else int(limit[1]))
    return Collected(value, {**origins, "host.memlock_bytes": "/proc/self/limits"}, gaps)


def folder(path: str, name: str, measure: Measure) -> Collected[Folder | None]:
    """A file system's size and room; `name` is its field in `Host`."""
    sizes = measure(path)
    if sizes is None:
        return Collected(None)
    return Collected(Folder(path=path, total_bytes=sizes[0], free_bytes=sizes[1]), {f"host.{name}": "statvfs"})


def measure_host_memory(path: str) -> tuple[int, int] | None:
    """What this machine says of a path. A path that does not exist yet is asked at the nearest folder above it."""
    path = os.path.abspath(path)
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    try:
        said = os.statvfs(path)
    except (OSError, AttributeError, ValueError):
        return None
    return said.f_blocks * said.f_frsize, said.f_bavail * said.f_frsize
