"""The live bytes of a device over its trace, by holder, at few hundred positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import pairwise
from operator import itemgetter

from msgspec import Struct

from oomdoctor.snapshots.recording import Action, Device
from oomdoctor.snapshots.replay import Totals, changes, last_changes, live_before
from oomdoctor.snapshots.sites import Categories, own_frame
from oomdoctor.snapshots.stacks import Stacks

_POINTS = 400
_HOLDERS = 10
_KEPT = 64
"""Holders that are remembered of each position; the ten are chosen among them at the end."""
_FRAMES = 24
"""The innermost ones of a stack that are told."""

Owner = tuple[str | None, str]
"""A line, where one was recorded, and what it holds."""


class OwnerCourse(Struct, frozen=True):
    """The live bytes of one holder, for each position of the course."""

    site: str | None
    category: str
    sizes: tuple[int, ...]
    blocks: int
    """So many where it is largest."""
    frames: tuple[str, ...]
    """The stack behind its largest block, innermost first, as file:line:function."""


class Course(Struct, frozen=True):
    """Live and reserved bytes at positions of a trace, the largest holders apart."""

    positions: tuple[int, ...]
    live: tuple[int, ...]
    reserved: tuple[int, ...]
    owners: tuple[OwnerCourse, ...]
    """The largest; what they leave of `live` is the rest."""


class Owners:
    """Who owns blocks: the line that asked and what for."""

    def __init__(self, stacks: Stacks, categories: Categories) -> None:
        self._stacks, self._categories = stacks, categories
        self._sites: dict[int, str | None] = {}
        self._same: dict[str, str] = {}

    def of(self, stack: int, born: int | None) -> Owner:
        """Return the owner of a block that was asked for with a stack at a position; None: before the recording."""
        if stack not in self._sites:
            frame = own_frame(self._stacks, stack)
            site = None if frame is None else str(frame)
            self._sites[stack] = None if site is None else self._same.setdefault(site, site)
        return self._sites[stack], self._categories.of(stack, born)

    def frames(self, stack: int) -> tuple[str, ...]:
        """Return the innermost frames of a stack."""
        return tuple(map(str, self._stacks[stack].frames[:_FRAMES]))


class _Tally:
    """Who holds what while a trace is played back."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._live: dict[int, tuple[Owner, int]] = {}
        self._sizes, self._blocks = Counter[Owner](), Counter[Owner]()
        self._largest: dict[Owner, tuple[int, int]] = {}
        self.most: dict[Owner, tuple[int, int]] = {}
        """Bytes and blocks of each holder at the sample where it is largest."""

    def allocate(self, address: int, size: int, stack: int, born: int | None) -> None:
        owner = self._owners.of(stack, born)
        self._live[address] = owner, size
        self._sizes[owner] += size
        self._blocks[owner] += 1
        if size > self._largest.get(owner, (0, 0))[0]:
            self._largest[owner] = size, stack

    def free(self, address: int) -> None:
        if address in self._live:
            owner, size = self._live.pop(address)
            self._sizes[owner] -= size
            self._blocks[owner] -= 1

    def sample(self) -> Mapping[Owner, int]:
        """Return the bytes of the largest holders now."""
        held = dict(nlargest(_KEPT, self._sizes.items(), key=itemgetter(1)))
        for owner, size in held.items():
            if size > self.most.get(owner, (0, 0))[0]:
                self.most[owner] = size, self._blocks[owner]
        return held

    def course_of(self, owner: Owner, held: Sequence[Mapping[Owner, int]]) -> OwnerCourse:
        """Return the course of a holder over the samples."""
        _, stack = self._largest[owner]
        return OwnerCourse(*owner, tuple(sizes.get(owner, 0) for sizes in held), self.most[owner][1], self._owners.frames(stack))


def course(device: Device, sums: Totals, owners: Owners) -> Course:
    """Return the course of a device; empty where nothing was recorded."""
    positions = _positions(sums.requested) if Action.ALLOC in device.trace.actions else []
    tally = _Tally(owners)
    held = list(_held(device, tally, positions))
    chosen = sorted(tally.most, key=lambda owner: (-tally.most[owner][0], owner[0] or "", owner[1]))[:_HOLDERS]
    return Course(
        positions=tuple(positions),
        live=tuple(sums.requested[at] for at in positions),
        reserved=tuple(sums.reserved[at] for at in positions),
        owners=tuple(tally.course_of(owner, held) for owner in chosen),
    )


def _positions(live: Sequence[int]) -> list[int]:
    """Return the position of the most live bytes in each of as many parts of a trace as there are points: no peak gets lost."""
    parts = min(_POINTS, len(live))
    edges = [len(live) * part // parts for part in range(parts + 1)] if parts else []
    return [live.index(max(live[start:stop]), start, stop) for start, stop in pairwise(edges)]


def _held(device: Device, tally: _Tally, positions: Sequence[int]) -> Iterator[Mapping[Owner, int]]:
    """Yield the bytes of the largest holders after the entry at each of the positions."""
    trace, marks, start = device.trace, changes(device.trace), 0
    for block in live_before(device).values():
        tally.allocate(block.address, block.requested, block.stack, block.born)
    for position in positions:
        for address, at in last_changes(trace, marks, start, position + 1):
            tally.free(address)
            if trace.actions[at] == Action.ALLOC:
                tally.allocate(address, trace.sizes[at], trace.stacks[at], at)
        start = position + 1
        yield tally.sample()
