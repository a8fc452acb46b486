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

Owner = tuple[str | None, str]
"""A line, where one was recorded, and what it holds."""


class OwnerCourse(Struct, frozen=True):
    """The live bytes of one holder, for each position of the course."""

    site: str | None
    category: str
    sizes: tuple[int, ...]


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


def course(device: Device, sums: Totals, owners: Owners) -> Course:
    """Return the course of a device; empty where nothing was recorded."""
    positions = _positions(sums.requested) if Action.ALLOC in device.trace.actions else []
    held = list(_held(device, owners, positions))
    most: dict[Owner, int] = {}
    for sizes in held:
        for owner, size in sizes.items():
            most[owner] = max(size, most.get(owner, 0))
    chosen = sorted(most, key=lambda owner: (-most[owner], owner[0] or "", owner[1]))[:_HOLDERS]
    return Course(
        positions=tuple(positions),
        live=tuple(sums.requested[at] for at in positions),
        reserved=tuple(sums.reserved[at] for at in positions),
        owners=tuple(OwnerCourse(*owner, tuple(sizes.get(owner, 0) for sizes in held)) for owner in chosen),
    )


def _positions(live: Sequence[int]) -> list[int]:
    """Return the position of the most live bytes in each of as many parts of a trace as there are points: no peak gets lost."""
    parts = min(_POINTS, len(live))
    edges = [len(live) * part // parts for part in range(parts + 1)] if parts else []
    return [live.index(max(live[start:stop]), start, stop) for start, stop in pairwise(edges)]


def _held(device: Device, owners: Owners, positions: Sequence[int]) -> Iterator[Mapping[Owner, int]]:
    """Yield the bytes of the largest holders after the entry at each of the positions."""
    trace, marks, sums, start = device.trace, changes(device.trace), Counter[Owner](), 0
    live: dict[int, tuple[Owner, int]] = {}
    for block in live_before(device).values():
        owner = owners.of(block.stack, block.born)
        live[block.address] = (owner, block.requested)
        sums[owner] += block.requested
    for position in positions:
        for address, at in last_changes(trace, marks, start, position + 1):
            if address in live:
                owner, size = live.pop(address)
                sums[owner] -= size
            if trace.actions[at] == Action.ALLOC:
                owner, size = live[address] = owners.of(trace.stacks[at], at), trace.sizes[at]
                sums[owner] += size
        start = position + 1
        yield dict(nlargest(_KEPT, sums.items(), key=itemgetter(1)))
