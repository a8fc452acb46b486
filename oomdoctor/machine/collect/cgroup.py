"""The memory limit of the container, job or slice that a process runs in, cgroup v1 and v2."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.environment import Cgroup
from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.root import Root

_V2 = "/sys/fs/cgroup"
_V1 = "/sys/fs/cgroup/memory"
_NO_LIMIT = 1 << 60
"""cgroup v1 writes its largest multiple of a page where there is no limit, 9223372036854771712."""


def collect_cgroup(root: Root) -> Collected[Cgroup | None]:
    """Find the smallest limit from the process's own group up to the root, with the use of the group that has it.

    Inside a container the paths of /proc/self/cgroup may be the host's and lead nowhere; the mount itself is then the group.
    """
    groups = root.read("/proc/self/cgroup") or ""
    second = re.search(r"^0::(/[^\n]{0,4000})$", groups, re.MULTILINE)
    first = re.search(r"^\d+:(?:[^:\n]{0,200},)?memory(?:,[^:\n]{0,200})?:(/[^\n]{0,4000})$", groups, re.MULTILINE)
    if first is not None and root.exists(f"{_V1}/memory.limit_in_bytes"):
        return _smallest_limit(root, 1, _V1, first[1], "memory.limit_in_bytes", "memory.usage_in_bytes")
    if root.exists(f"{_V2}/cgroup.controllers") or root.exists(f"{_V2}/memory.max"):
        return _smallest_limit(root, 2, _V2, second[1] if second else "/", "memory.max", "memory.current")
    return Collected(None)


def _smallest_limit(root: Root, version: int, mount: str, group: str, limit: str, used: str) -> Collected[Cgroup | None]:
    limits = [
        (size, folder) for folder in _group_and_parents(root, mount, group) if (size := _limit(root, f"{folder}/{limit}")) is not None
    ]
    size, folder = min(limits, default=(None, next(_group_and_parents(root, mount, group), mount)))
    kills = root.read(f"{folder}/{'memory.events' if version == 2 else 'memory.oom_control'}") or ""
    counted = re.search(r"^oom_kill (\d{1,12})$", kills, re.MULTILINE)
    value = Cgroup(
        version=version, limit_bytes=size, used_bytes=root.number(f"{folder}/{used}"), kills=int(counted[1]) if counted else None
    )
    return Collected(value, {"host.cgroup": f"cgroup v{version}, {limit}"})


def _group_and_parents(root: Root, mount: str, group: str) -> Iterator[str]:
    """Yield the folders of a group and of those above it that there are, its own first."""
    parts = [part for part in group.split("/") if part not in ("", ".", "..")]
    for count in range(len(parts), -1, -1):
        folder = "/".join([mount, *parts[:count]])
        if root.exists(folder):
            yield folder


def _limit(root: Root, path: str) -> int | None:
    size = root.number(path)
    return None if size is None or size >= _NO_LIMIT else size
