"""The live bytes of a device over its trace, by holder, at few hundred positions."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from operator import itemgetter

from msgspec import Struct

from oomdoctor.snapshots.recording import Action, Device
from oomdoctor.snapshots.replay import frees_by, live_before, series
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
        self._frames = [own_frame(stacks, number) for number in range(len(stacks))]
        self._sites = {frame: None if frame is None else str(frame) for frame in set(self._frames)}
        self._categories = categories

    def of(self, stack: int, born: int | None) -> Owner:
        """Return the owner of a block that was asked for with a stack at a position; None: before the recording."""
        return self._sites[self._frames[stack]], self._categories.of(stack, born)


def course(device: Device, owners: Owners) -> Course:
    """Return the course of a device; empty where nothing was recorded."""
    live, reserved = array("Q"), array("Q")
    for requested, given in series(device) if Action.ALLOC in device.trace.actions else ():
        live.append(requested)
        reserved.append(given)
    positions = _positions(live)
    held = list(_held(device, owners, positions))
    most: dict[Owner, int] = {}
    for sizes in held:
        for owner, size in sizes.items():
            most[owner] = max(size, most.get(owner, 0))
    chosen = sorted(most, key=lambda owner: (-most[owner], owner[0] or "", owner[1]))[:_HOLDERS]
    return Course(
        positions=tuple(positions),
        live=tuple(live[at] for at in positions),
        reserved=tuple(reserved[at] for at in positions),
        owners=tuple(OwnerCourse(*owner, tuple(sizes.get(owner, 0) for sizes in held)) for owner in chosen),
    )


def _positions(live: Sequence[int]) -> list[int]:
    """Return the position of the most live bytes in each of as many parts of a trace as there are points: no peak gets lost."""
    parts = min(_POINTS, len(live))
    edges = [len(live) * part // parts for part in range(parts + 1)] if parts else []
    return [max(range(start, stop), key=live.__getitem__) for start, stop in zip(edges, edges[1:], strict=False)]


def _held(device: Device, owners: Owners, positions: Sequence[int]) -> Iterator[Mapping[Owner, int]]:
    """Yield the bytes of the largest holders after the entry at each of the positions."""
    trace, free = device.trace, frees_by(device.trace)
    sums: Counter[Owner] = Counter()
    live: dict[int, tuple[Owner, int]] = {}
    for block in live_before(device).values():
        owner = owners.of(block.stack, block.born)
        live[block.address] = (owner, block.requested)
        sums[owner] += block.requested
    start = 0
    for stop in positions:
        for at in range(start, stop + 1):
            action, address = trace.actions[at], trace.addresses[at]
            if action == Action.ALLOC:
                size = trace.sizes[at]
                owner = owners.of(trace.stacks[at], at)
                live[address] = (owner, size)
                sums[owner] += size
            elif action == free and address in live:
                owner, size = live.pop(address)
                sums[owner] -= size
        start = stop + 1
        yield dict(nlargest(_KEPT, sums.items(), key=itemgetter(1)))
