"""What lived, and what was reserved, at any position of a trace.

The state in a file is the one when it was saved, not when memory ran out, and a trace begins anywhere. So the start is worked out
backwards: what lives at the end, less all that was allocated since, and with all that was freed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec import Struct

from oomdoctor.snapshots.recording import NO_STACK, Action, Device, Trace

_GROWS = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_UNIT = 512
"""Requests are rounded up to it (kMinBlockSize, c10/cuda/CUDACachingAllocator.cpp)."""
_SHRINKS = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


class Peak(Struct, frozen=True):
    """The first moment at which as many asked bytes lived as never before."""

    position: int
    requested: int
    reserved: int


@dataclass(frozen=True, slots=True)
class LiveBlock:
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
    trace, live, free = device.trace, live_before(device), frees_by(device.trace)
    saved = _saved_sizes(device)
    for at in range(min(position, len(trace))):
        action, address = trace.actions[at], trace.addresses[at]
        if action == Action.ALLOC:
            size = trace.sizes[at]
            live[address] = LiveBlock(address, size, saved.get((address, at)) or rounded(size), trace.stacks[at], at)
        elif action == free:
            live.pop(address, None)
    return live


def _saved_sizes(device: Device) -> dict[tuple[int, int], int]:
    """Return the sizes of the blocks in the saved state that the trace allocated, by address and position."""
    trace, end = device.trace, live_at_end(device)
    born = {address: at for at, (action, address) in enumerate(zip(trace.actions, trace.addresses, strict=True)) if action == Action.ALLOC}
    return {(address, born[address]): block.size for address, block in end.items() if address in born}


def rounded(size: int) -> int:
    """Return what a request takes of a segment at least."""
    return -(-max(size, 1) // _UNIT) * _UNIT


def requested_at_start(device: Device) -> int:
    """Return the asked bytes that lived before the first entry."""
    trace, free = device.trace, frees_by(device.trace)
    total = sum(block.requested for block in live_at_end(device).values())
    for action, size in zip(trace.actions, trace.sizes, strict=True):
        total += size if action == free else -size if action == Action.ALLOC else 0
    return total


def reserved_at_start(device: Device) -> int:
    """Return the bytes of segments before the first entry."""
    trace = device.trace
    total = sum(segment.size for segment in device.segments)
    for action, size in zip(trace.actions, trace.sizes, strict=True):
        total += size if action in _SHRINKS else -size if action in _GROWS else 0
    return total


def series(device: Device) -> Iterator[tuple[int, int]]:
    """Yield the asked bytes that live, and the reserved bytes, after each entry of the trace."""
    trace, free = device.trace, frees_by(device.trace)
    requested, reserved = requested_at_start(device), reserved_at_start(device)
    for action, size in zip(trace.actions, trace.sizes, strict=True):
        if action == Action.ALLOC:
            requested += size
        elif action == free:
            requested -= size
        elif action in _GROWS:
            reserved += size
        elif action in _SHRINKS:
            reserved -= size
        yield requested, reserved


def peak(device: Device) -> Peak:
    """Return when most lived; of a trace without entries, the state that was saved."""
    best = Peak(0, requested_at_start(device), reserved_at_start(device))
    for position, (requested, reserved) in enumerate(series(device)):
        if requested > best.requested:
            best = Peak(position, requested, reserved)
    return best


def totals_at(device: Device, position: int) -> tuple[int, int]:
    """Return the asked bytes that live, and the reserved bytes, before the entry at a position."""
    last = next(islice(series(device), position - 1, None), None) if position else None
    return last or (requested_at_start(device), reserved_at_start(device))
