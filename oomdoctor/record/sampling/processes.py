"""The processes of a run, from /proc: who belongs to it, what each holds, and how it was called."""

from __future__ import annotations

import os
import time
from contextlib import suppress

_SCAN_EVERY = 10.0
"""Seconds between two looks at every process: a child of another thread than the first stands in no short list."""
_SCAN_SHARE = 0.0003
"""Of a core, at most, for such looks: a machine of many processes is looked over less often."""
_MOST = 20_000
_LEAST_LOOKS = 2
_COMMAND = 400


class Seen:
    """A process of the run, and the most that it was seen to hold."""

    __slots__ = ("command", "first", "last", "looks", "parent", "peak_rss", "pid", "rank", "rss", "started")

    def __init__(self, pid: int, parent: int, started: int) -> None:
        self.pid, self.parent, self.started = pid, parent, started
        self.first = self.last = time.time()
        self.command = command_of(pid)
        self.rank = rank_of(pid)
        self.rss = self.peak_rss = 0
        self.looks = 0


class ProcessTree:
    """The descendants of a process, followed from look to look. A number that the system gives out again is another process."""

    def __init__(self, root: int, without: frozenset[int] = frozenset()) -> None:
        self._root, self._without = root, without
        self._scan_at = 0.0
        self.seen: dict[tuple[int, int], Seen] = {}
        self._alive: dict[int, Seen] = {}

    def look(self) -> int:
        """Look again and return the bytes that all of them hold together."""
        now = time.monotonic()
        full = now >= self._scan_at
        for pid, parent in self._by_scan() if full else self._by_lists():
            if pid not in self._alive and len(self.seen) < _MOST:
                self._add(pid, parent)
        if full:
            self._scan_at = now + max(_SCAN_EVERY, (time.monotonic() - now) / _SCAN_SHARE)
        for pid in list(self._alive):
            self._measure(pid)
        return sum(process.rss for process in self._alive.values())

    def alive(self) -> dict[int, int]:
        """Return what each living process holds, as of the last look."""
        return {pid: process.rss for pid, process in self._alive.items()}

    def passing(self) -> int:
        """Return how many processes were met in one look and were gone at the next: a sign of others that no look met."""
        return sum(process.looks < _LEAST_LOOKS and process.pid not in self._alive for process in self.seen.values())

    def is_full(self) -> bool:
        """Return whether more were met than are kept."""
        return len(self.seen) >= _MOST

    def _add(self, pid: int, parent: int) -> None:
        started = _start_of(pid)
        if started is not None:
            process = self.seen.setdefault((pid, started), Seen(pid, parent, started))
            self._alive[pid] = process

    def _by_lists(self) -> list[tuple[int, int]]:
        out: list[tuple[int, int]] = []
        parents = [self._root, *self._alive]
        while parents and len(out) < _MOST:
            parent = parents.pop()
            for child in _read(f"/proc/{parent}/task/{parent}/children").split():
                pid = int(child)
                if pid in self._without:
                    continue
                out.append((pid, parent))
                if pid not in self._alive:
                    parents.append(pid)
        return out

    def _by_scan(self) -> list[tuple[int, int]]:
        """Return every process below the root, by the parents of all; what is left out is left out with what it started."""
        children: dict[int, list[int]] = {}
        with suppress(OSError):
            for name in os.listdir("/proc"):
                if name.isdigit() and int(name) not in self._without:
                    parent = _parent_of(int(name))
                    if parent is not None:
                        children.setdefault(parent, []).append(int(name))
        out, parents = [], [self._root]
        while parents:
            parent = parents.pop()
            out += [(child, parent) for child in children.get(parent, ())]
            parents += children.get(parent, ())
        return out

    def _measure(self, pid: int) -> None:
        process = self._alive[pid]
        status = _read(f"/proc/{pid}/status")
        rss, peak = _kib(status, b"VmRSS:"), _kib(status, b"VmHWM:")
        if not status or b"\nState:\tZ" in status or (rss is None and _start_of(pid) != process.started):
            del self._alive[pid]
            return
        if not process.command:
            process.command = command_of(pid)
        process.last = time.time()
        process.looks += 1
        process.rss = rss or 0
        process.peak_rss = max(process.peak_rss, process.rss, peak or 0)


def command_of(pid: int) -> str:
    """Return how a process was called, its words with blanks between; nothing where that cannot be read."""
    return _read(f"/proc/{pid}/cmdline")[: _COMMAND * 4].rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")[:_COMMAND]


def rank_of(pid: int) -> int | None:
    """Return the rank that a launcher gave a process when it started it."""
    for word in _read(f"/proc/{pid}/environ").split(b"\0"):
        name, _, value = word.partition(b"=")
        if name in (b"RANK", b"SLURM_PROCID", b"OMPI_COMM_WORLD_RANK", b"PMI_RANK") and value.isdigit() and len(value) < 8:
            return int(value)
    return None


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat behind the name, which may hold blanks and brackets."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _parent_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else None


def _start_of(pid: int) -> int | None:
    """Return when a process started, in ticks since the machine did."""
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 else None


def _kib(status: bytes, name: bytes) -> int | None:
    start = status.find(name)
    if start < 0:
        return None
    number = status[start + len(name) : start + 40].split(None, 1)[0]
    return int(number) * 1024 if number.isdigit() else None


def _read(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(handle, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(handle)
