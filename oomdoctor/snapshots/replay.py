"""What lived, and what was reserved, at any position of a trace.

The state in a file is the one when it was saved, not when memory ran out, and a trace begins anywhere. So the start is worked out
backwards: what lives at the end, less all that was allocated since, and with all that was freed since.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress, islice
from operator import itemgetter, mul
from typing import NamedTuple

from msgspec import Struct

from oomdoctor.snapshots.recording import Action, Device, Trace
from oomdoctor.snapshots.stacks import NO_STACK

_GROWS = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_UNIT = 512
"""Requests are rounded up to it (kMinBlockSize, c10/cuda/CUDACachingAllocator.cpp)."""
_SHRINKS = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


class Peak(Struct, frozen=True):
    """The first moment at which as many asked bytes lived as never before."""

    position: int
    requested: int
    reserved: int


class LiveBlock(NamedTuple):
    """What somebody held at a moment."""

    address: int
    requested: int
    size: int
    """What it takes of a segment: as the saved state says it, else the request rounded up to 512 bytes."""
    stack: int
    born: int | None
    """The position at which it was allocated; None where it was there before the trace begins."""


def frees_by(trace: Trace) -> Action:
    """Return the action after which memory can be used again: programs may leave actions out (`skip_actions`, torch 2.11)."""
    return Action.FREE_COMPLETED if Action.FREE_COMPLETED in trace.actions else Action.FREE_REQUESTED


def live_at_end(device: Device) -> dict[int, LiveBlock]:
    """Return the blocks that live in the state that was saved, by address."""
    blocks = (block for segment in device.segments for block in segment.blocks if block.is_live)
    return {block.address: LiveBlock(block.address, block.requested, block.size, block.stack, None) for block in blocks}


def live_before(device: Device) -> dict[int, LiveBlock]:
    """Return the blocks that lived before the first entry, by address: those saved that no entry names, and those freed first of all.

    The stack of one that was freed since is not known; of the others it is the one in the saved state.
    """
    trace, marks = device.trace, changes(device.trace)[::-1]
    first = dict(zip(compress(reversed(trace.addresses), marks), compress(range(len(trace) - 1, -1, -1), marks), strict=True))
    live = {address: block for address, block in live_at_end(device).items() if address not in first}
    for address, at in sorted(first.items(), key=itemgetter(1), reverse=True):
        if trace.actions[at] != Action.ALLOC:
            live[address] = LiveBlock(address, trace.sizes[at], rounded(trace.sizes[at]), NO_STACK, None)
    return live


def changes(trace: Trace) -> bytes:
    """Return 1 for each entry that allocates or frees."""
    return trace.where(Action.ALLOC, frees_by(trace))


def last_changes(trace: Trace, marks: bytes, begin: int, end: int) -> list[tuple[int, int]]:
    """Return the addresses that were allocated or freed between two positions, and where last, in the order of the entries.

    `marks` are the `changes` of the trace. What happened to an address before its last change does not matter to what lives behind.
    """
    here = marks[begin:end]
    last = dict(zip(compress(trace.addresses[begin:end], here), compress(range(begin, end), here), strict=True))
    return sorted(last.items(), key=itemgetter(1))


def live_at(device: Device, position: int) -> dict[int, LiveBlock]:
    """Return the blocks that live before the entry at a position, by address."""
    return next(live for _, live in live_at_each(device, (position,)))


def live_at_each(device: Device, positions: Sequence[int]) -> Iterator[tuple[int, dict[int, LiveBlock]]]:
    """Yield the blocks that live before the entry at each of the positions, which rise; the dict is the same one each time."""
    trace, live, marks = device.trace, live_before(device), changes(device.trace)
    saved, begin = _saved_sizes(device), 0
    for position in positions:
        for address, at in last_changes(trace, marks, begin, position):
            live.pop(address, None)
            if trace.actions[at] == Action.ALLOC:
                size = trace.sizes[at]
                live[address] = LiveBlock(address, size, saved.get((address, at)) or rounded(size), trace.stacks[at], at)
        begin = position
        yield position, live


def _saved_sizes(device: Device) -> dict[tuple[int, int], int]:
    """Return the sizes of the blocks in the saved state that the trace allocated, by address and position."""
    trace, allocs = device.trace, device.trace.where(Action.ALLOC)
    born = dict(zip(compress(trace.addresses, allocs), compress(range(len(trace)), allocs), strict=True))
    return {(address, born[address]): block.size for address, block in live_at_end(device).items() if address in born}


def rounded(size: int) -> int:
    """Return what a request takes of a segment at least."""
    return -(-max(size, 1) // _UNIT) * _UNIT


class Start(Struct, frozen=True):
    """The bytes before the first entry, worked out from the state that was saved."""

    requested: int
    reserved: int
    missing: int
    """What the trace frees or gives back less than it must have: then the trace and the state do not fit each other."""


def start(device: Device) -> Start:
    """Return the asked bytes that lived, and the bytes of segments, before the first entry."""
    live = sum(block.requested for segment in device.segments for block in segment.blocks if block.is_live)
    requested = live - _added(device.trace, (Action.ALLOC,), (frees_by(device.trace),))
    reserved = sum(segment.size for segment in device.segments) - _added(device.trace, _GROWS, _SHRINKS)
    return Start(max(0, requested), max(0, reserved), max(0, -requested, -reserved))


def _added(trace: Trace, grows: Sequence[Action], shrinks: Sequence[Action]) -> int:
    """Return the bytes that the entries of a trace add, less those that they take."""
    return sum(compress(trace.sizes, trace.where(*grows))) - sum(compress(trace.sizes, trace.where(*shrinks)))


class Totals(NamedTuple):
    """The asked bytes that live, and the reserved bytes: before the first entry, and after each."""

    start: Start
    requested: Sequence[int]
    reserved: Sequence[int]

    def before(self, position: int) -> tuple[int, int]:
        """Return both before the entry at a position."""
        return (self.requested[position - 1], self.reserved[position - 1]) if position else (self.start.requested, self.start.reserved)


def running_totals(device: Device) -> Totals:
    """Return the sums over the whole trace."""
    begin, trace = start(device), device.trace
    requested = _levels(begin.requested, trace, (Action.ALLOC,), (frees_by(trace),))
    return Totals(begin, requested, _levels(begin.reserved, trace, _GROWS, _SHRINKS))


def _levels(begin: int, trace: Trace, grows: Sequence[Action], shrinks: Sequence[Action]) -> Sequence[int]:
    """Return what there is after each entry; never less than nothing, even where the trace and the state do not fit each other."""
    signs = [(action in grows) - (action in shrinks) for action in Action]
    changes = map(mul, trace.sizes, map(signs.__getitem__, trace.actions))
    return array("Q", islice(accumulate(changes, _changed, initial=begin), 1, None))


def _changed(level: int, change: int) -> int:
    return level + change if level + change > 0 else 0


def peak(sums: Totals) -> Peak:
    """Return when most lived; of a trace without entries, the state that was saved."""
    most = max(sums.requested, default=0)
    if most <= sums.start.requested:
        return Peak(0, sums.start.requested, sums.start.reserved)
    position = sums.requested.index(most)
    return Peak(position, most, sums.reserved[position])
