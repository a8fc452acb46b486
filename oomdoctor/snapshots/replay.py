"""What lived, and what was reserved, at any position of a trace.

The state in a file is the one when it was saved, not when memory ran out, and a trace begins anywhere. So the start is worked out
backwards: what lives at the end, less all that was allocated since, and with all that was freed since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
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
    """Return the blocks that lived before the first entry, by address.

    The stack of one that was freed since is not known; of the others it is the one in the saved state.
    """
    trace, live, free = device.trace, live_at_end(device), frees_by(device.trace)
    for position in range(len(trace) - 1, -1, -1):
        action, address = trace.actions[position], trace.addresses[position]
        if action == Action.ALLOC:
            live.pop(address, None)
        elif action == free:
            live[address] = LiveBlock(address, trace.sizes[position], rounded(trace.sizes[position]), NO_STACK, None)
    return live


def live_at(device: Device, position: int) -> dict[int, LiveBlock]:
    """Return the blocks that live before the entry at a position, by address."""
    return next(live for _, live in live_at_each(device, (position,)))


def live_at_each(device: Device, positions: Sequence[int]) -> Iterator[tuple[int, dict[int, LiveBlock]]]:
    """Yield the blocks that live before the entry at each of the positions, which rise; the dict is the same one each time."""
    trace, live, free = device.trace, live_before(device), frees_by(device.trace)
    saved, begin = _saved_sizes(device), 0
    for position in positions:
        for at in range(begin, min(position, len(trace))):
            action, address = trace.actions[at], trace.addresses[at]
            if action == Action.ALLOC:
                size = trace.sizes[at]
                live[address] = LiveBlock(address, size, saved.get((address, at)) or rounded(size), trace.stacks[at], at)
            elif action == free:
                live.pop(address, None)
        begin = position
        yield position, live


def _saved_sizes(device: Device) -> dict[tuple[int, int], int]:
    """Return the sizes of the blocks in the saved state that the trace allocated, by address and position."""
    trace, end = device.trace, live_at_end(device)
    born = {address: at for at, (action, address) in enumerate(zip(trace.actions, trace.addresses, strict=True)) if action == Action.ALLOC}
    return {(address, born[address]): block.size for address, block in end.items() if address in born}


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
    sizes = [0] * (max(Action) + 1)
    for action, size in zip(device.trace.actions, device.trace.sizes, strict=True):
        sizes[action] += size
    live = sum(block.requested for segment in device.segments for block in segment.blocks if block.is_live)
    requested = live + sizes[frees_by(device.trace)] - sizes[Action.ALLOC]
    held = sum(segment.size for segment in device.segments)
    reserved = held + sum(sizes[action] for action in _SHRINKS) - sum(sizes[action] for action in _GROWS)
    return Start(max(0, requested), max(0, reserved), max(0, -requested, -reserved))


def series(device: Device) -> Iterator[tuple[int, int]]:
    """Yield the asked bytes that live, and the reserved bytes, after each entry of the trace."""
    trace, free = device.trace, frees_by(device.trace)
    begin = start(device)
    requested, reserved = begin.requested, begin.reserved
    for action, size in zip(trace.actions, trace.sizes, strict=True):
        if action == Action.ALLOC:
            requested += size
        elif action == free:
            requested = max(0, requested - size)
        elif action in _GROWS:
            reserved += size
        elif action in _SHRINKS:
            reserved = max(0, reserved - size)
        yield requested, reserved


def peak(device: Device) -> Peak:
    """Return when most lived; of a trace without entries, the state that was saved."""
    begin = start(device)
    position, requested, reserved = 0, begin.requested, begin.reserved
    for at, (live, held) in enumerate(series(device)):
        if live > requested:
            position, requested, reserved = at, live, held
    return Peak(position, requested, reserved)


def totals_at(device: Device, positions: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the asked bytes that live, and the reserved bytes, before the entries at some positions."""
    begin, at_these = start(device), set(positions)
    before = chain(((begin.requested, begin.reserved),), series(device))
    return {at: totals for at, totals in enumerate(before) if at in at_these}
