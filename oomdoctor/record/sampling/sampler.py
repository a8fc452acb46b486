"""Look at the memory of a command again and again, and say in the end what was seen."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from threading import Timer
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import encode

from oomdoctor.record.evidence import SAMPLES, EvidenceGap, FileSystem, Sample, Survivor, WatchedProcess
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.sampling.before import KernelBefore
from oomdoctor.record.sampling.host import file_system, has_card_driver, has_machine_pids, memory, pressure, started_processes, swap
from oomdoctor.record.sampling.processes import ProcessTree, command_of
from oomdoctor.record.sampling.sampler_process import Summary

if TYPE_CHECKING:
    from oomdoctor.record.sampling.cards import Cards

_SHM = "/dev/shm"  # noqa: S108 - a place to look at, not to write to
_SLOW, _FAST = 1.0, 0.2
_FIRST = 60.0
_WRITE_EVERY = 5.0
"""Seconds between two writes."""
_MANY_PASSING = 3
"""From so many processes on that one look alone met, others came and went unseen."""
_ASIDE = 3.0
"""Seconds after which the rest is done: most commands that are shorter need none of it."""


def sample_until_asked(
    question: int,
    ask: int,
    folder: EvidenceFolder,
    ours: frozenset[int],
    places: tuple[str, ...],
    before: KernelBefore,
    once: tuple[Callable[[], object], ...],
    parent: int,
    writer: int,
) -> None:
    """Sample until the wrapper asks for the sum, or is gone."""
    os.close(ask)
    aside = Timer(_ASIDE, _do_all, (once,))
    aside.daemon = True
    sampler = Sampler(ProcessTree(parent, ours | {os.getpid()}), places, before)
    aside.start()
    lines: list[bytes] = []
    written = time.monotonic()
    while True:
        sample = sampler.sample()
        lines.append(encode(_without_nothing(sample)))
        now = time.monotonic()
        # What is nearly full may be the end of this process, too.
        if now - written >= _WRITE_EVERY or now - sampler.began < _WRITE_EVERY or sample.group_is_full() or sample.machine_is_full():
            folder.append(SAMPLES, lines)
            lines.clear()
            written = now
        if select.select([question], [], [], sampler.next_in(sample))[0]:
            break
    lines.append(encode(_without_nothing(sampler.sample())))
    folder.append(SAMPLES, lines)
    data = encode(sampler.summary(tuple(folder.gaps)))
    while data:
        data = data[os.write(writer, data) :]


def _do_all(once: tuple[Callable[[], object], ...]) -> None:
    for act in once:
        with suppress(Exception):  # what is not there at the end is looked for again, or a gap
            act()


def _unmet(tree: ProcessTree, started: int | None) -> tuple[EvidenceGap, ...]:
    """Return that the list of processes is not all of them, where some were too short for that or too many.

    `started` is how many processes and threads the machine started meanwhile.
    """
    passing = tree.passing()
    if not tree.is_full() and passing < _MANY_PASSING:
        return ()
    bound = "" if started is None else f"; the machine started {started:,} processes and threads meanwhile"
    why = "more than the limit" if tree.is_full() else f"{passing:,} were seen once and gone at the next sample, others not at all"
    return (EvidenceGap(what=f"processes other than the {len(tree.seen):,} listed", why=f"{why}{bound}"),)


class Sampler:
    """Looks again and again. What cannot be read is None."""

    def __init__(self, tree: ProcessTree, places: tuple[str, ...], before: KernelBefore) -> None:
        self._tree = tree
        self._places = tuple(dict.fromkeys((_SHM, *places)))
        self._least: dict[str, FileSystem] = {}
        self._before = before
        self._cards: Cards | None = import_module("oomdoctor.record.sampling.cards").Cards() if has_card_driver() else None
        self.began = time.monotonic()
        self._started = started_processes()
        self._near: str | None = None

    def sample(self) -> Sample:
        """Return the memory of this moment."""
        rss = self._tree.look()
        available, total = memory()
        free = {place: self._free(place) for place in self._places}
        alive = self._tree.alive()
        sample = Sample(
            t=round(time.time(), 3),
            rss=rss,
            available=available,
            total=total,
            swap_free=swap()[0],
            cgroup=self._before.group.sample(),
            psi=pressure(),
            shm_free=free[_SHM],
            disk_free=min((size for place, size in free.items() if place != _SHM and size is not None), default=None),
            cards=() if self._cards is None else self._cards.sample(alive),
            processes={str(pid): size for pid, size in alive.items()},
        )
        self._near = self._near or _nearly_full(sample)
        return sample

    def next_in(self, last: Sample) -> float:
        """Return the seconds to the next sample: fewer at first, and near a limit."""
        return _FAST if time.monotonic() - self.began < _FIRST or last.group_is_full() or last.machine_is_full() else _SLOW

    def summary(self, gaps: tuple[EvidenceGap, ...]) -> Summary:
        """Return what was seen from the start until now."""
        alive = self._tree.alive()
        lines = self._before.log.lines()
        now = started_processes()
        started = None if now is None or self._started is None else now - self._started
        return Summary(
            processes=tuple(
                WatchedProcess(
                    pid=process.pid,
                    parent=process.parent,
                    command=process.command,
                    start=round(process.first, 3),
                    end=round(process.last, 3),
                    rank=process.rank,
                    peak_rss_bytes=process.peak_rss or None,
                )
                for process in sorted(self._tree.seen.values(), key=lambda process: process.first)
            ),
            alive=tuple(Survivor(pid=pid, command=name, card_bytes=self._held(pid)) for pid in alive if (name := command_of(pid))),
            counters=self._before.group.counters(),
            host_oom_kills=self._before.kills_since(),
            has_machine_pids=has_machine_pids(),
            files=tuple(self._least.values()),
            kernel=tuple(lines or ()),
            gaps=(
                *gaps,
                *_unmet(self._tree, started),
                *(() if self._cards is None else self._cards.gaps),
                *((_NO_KERNEL,) if lines is None else ()),
            ),
            near=self._near,
        )

    def _held(self, pid: int) -> int | None:
        return None if self._cards is None else self._cards.held(pid)

    def _free(self, place: str) -> int | None:
        free, total = file_system(place)
        before = self._least.get(place)
        least = free if before is None or before.least_free_bytes is None else min(before.least_free_bytes, free or 0)
        if free is not None:
            self._least[place] = FileSystem(path=place, total_bytes=total, least_free_bytes=least)
        return free


_NO_KERNEL = EvidenceGap(what="kernel log lines", why="/dev/kmsg is not readable here", how="dmesg, on the host")
_NEARLY = 0.97


def _nearly_full(sample: Sample) -> str | None:
    """Return what is used to within three hundredths, in words."""
    for card in sample.cards:
        if card.used is not None and card.total and card.ours and card.used > _NEARLY * card.total:
            return f"card {card.index}"
    group = sample.cgroup
    if group is not None and group.limit and sample.rss is not None and sample.rss > _NEARLY * group.limit:
        return "the memory limit of the control group"
    return None


def _without_nothing(value: Struct) -> dict[str, object]:
    """Return a structure without what is not known."""
    plain = {name: getattr(value, name) for name in value.__struct_fields__}
    out = {name: held for name, held in plain.items() if held is not None and held not in ((), {})}
    return {name: _without_nothing(held) if isinstance(held, Struct) else held for name, held in out.items()}
