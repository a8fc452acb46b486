"""The control group that a run lives in, versions 1 and 2: which group limits its memory, and what was counted during the run."""

from __future__ import annotations

import os
import re
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from oomdoctor.record.sampling.host import read

if TYPE_CHECKING:
    from oomdoctor.record.evidence import CgroupCounters, CgroupSample

_NO_LIMIT = 1 << 60
"""Version 1 writes its largest multiple of a page where there is no limit."""
_NAMES = {
    1: ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"),
    2: ("memory.current", "memory.max", "memory.peak", "memory.events"),
}


class MemoryGroup:
    """The group that a process is in, and the one above it, or itself, whose limit is the smallest."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self.version, self._own, self._limiting = self._found()
        self._at_start = self._counted()

    def sample(self) -> CgroupSample | None:
        """Return the state of the group that limits the run, else of its own."""
        if self._own is None or self._limiting is None:
            return None
        current, limit, _, _ = _NAMES[self.version]
        now, most = self._number(self._limiting, current), self._limit(self._limiting, limit)
        kills = self._events(self._own).get("oom_kill")
        before = self._at_start.get("oom_kill")
        since = None if kills is None or before is None else kills - before
        sample: CgroupSample = _evidence().CgroupSample(current=now, limit=most, oom_kill=since)
        return sample

    def counters(self) -> CgroupCounters | None:
        """Return what was counted since the start."""
        if self._limiting is None:
            return None
        _, limit, peak, _ = _NAMES[self.version]
        now = self._counted()
        since = {name: value - self._at_start[name] for name, value in now.items() if name in self._at_start}
        counters: CgroupCounters = _evidence().CgroupCounters(
            version=self.version,
            limit_bytes=self._limit(self._limiting, limit),
            peak_bytes=self._number(self._limiting, peak),
            oom=since.get("oom"),
            oom_kill=since.get("oom_kill"),
            max=since.get("max"),
        )
        return counters

    def _counted(self) -> dict[str, int]:
        """Return the counters: kills are counted where the killed process was, failures where the limit is."""
        if self._own is None or self._limiting is None:
            return {}
        own, limiting = self._events(self._own), self._events(self._limiting)
        out: dict[str, int] = {name: limiting[name] for name in ("oom", "max") if name in limiting}
        if self.version == 1 and (failed := self._number(self._limiting, "memory.failcnt")) is not None:
            out["max"] = failed
        if "oom_kill" in own:
            out["oom_kill"] = own["oom_kill"]
        return out

    def _events(self, folder: str) -> dict[str, int]:
        text = read(f"{folder}/{_NAMES[self.version][3]}") or b""
        return {name.decode(): int(count) for name, count in re.findall(rb"^(\w{2,30}) (\d{1,18})$", text, re.MULTILINE)}

    def _found(self) -> tuple[int, str | None, str | None]:
        groups = (read(f"{self._root}/proc/self/cgroup") or b"").decode("utf-8", "replace")
        mounts = (read(f"{self._root}/proc/self/mountinfo", 1 << 20) or b"").decode("utf-8", "replace")
        for version, pattern, kind in (
            (1, r"^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(/[^\n]*)$", r"cgroup \S+ (?=\S*\bmemory\b)"),
            (2, r"^0::(/[^\n]*)$", "cgroup2 "),
        ):
            group = re.search(pattern, groups, re.MULTILINE)
            mount = re.search(rf"^\d+ \d+ \S+ (\S+) (\S+) [^\n]*? - {kind}", mounts, re.MULTILINE)
            if group is None or mount is None:
                continue
            folders = self._folders(mount[2], mount[1], group[1], version)
            if folders:
                limit = _NAMES[version][1]
                sizes = [(size, at) for at, folder in enumerate(folders) if (size := self._limit(folder, limit)) is not None]
                return version, folders[0], folders[min(sizes)[1] if sizes else 0]
        return 2, None, None

    def _folders(self, mount: str, mounted: str, group: str, version: int) -> list[str]:
        """Return the folders of a group and of those above it that tell of memory, its own first.

        In a container the paths are the host's where the namespace is the host's: the mount itself is then the group.
        """
        inside = os.path.relpath(group, mounted) if group.startswith(mounted) else "."
        parts = [part for part in inside.split("/") if part not in ("", ".", "..")]
        folders = ["/".join([self._root + mount, *parts[:count]]) for count in range(len(parts), -1, -1)]
        return [folder for folder in folders if os.path.exists(f"{folder}/{_NAMES[version][0]}")]

    def _limit(self, folder: str, name: str) -> int | None:
        size = self._number(folder, name)
        return None if size is None or size >= _NO_LIMIT else size

    def _number(self, folder: str, name: str) -> int | None:
        text = (read(f"{folder}/{name}", 64) or b"").strip()
        return int(text) if text.isdigit() else None


def _evidence() -> ModuleType:
    """Return the structures of the evidence, which the group that is looked at before a command starts need not wait for."""
    return import_module("oomdoctor.record.evidence")
