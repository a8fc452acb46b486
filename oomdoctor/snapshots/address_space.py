"""Where the segments lay at a position of a trace, and what was free between the blocks in them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from oomdoctor.snapshots.recording import Action, Device, Trace
from oomdoctor.snapshots.replay import LiveBlock

_SMALL = 1 << 20
"""Requests up to it come from the small pool, whose segments have 2 MiB (kSmallSize, kSmallBuffer)."""
_SMALL_SEGMENT = 2 << 20
_OF_SEGMENTS = frozenset((Action.SEGMENT_ALLOC, Action.SEGMENT_MAP, Action.SEGMENT_FREE, Action.SEGMENT_UNMAP))

Owner = tuple[int, tuple[int, int]]
"""A stream and a pool: what is free there is nobody else's."""


@dataclass(frozen=True, slots=True)
class ReservedRange:
    """Memory that the driver gave, from one address to another."""

    start: int
    stop: int
    owner: Owner | None
    """None where the trace freed it: a trace names the stream of an entry, and not always the pool."""
    is_small: bool


@dataclass(frozen=True, slots=True)
class FreePiece:
    """Free bytes between two blocks, or a block and the end of its segment."""

    start: int
    size: int
    owner: Owner | None
    is_small: bool
    before: int | None
    behind: int | None
    """The addresses of the blocks that stand beside it; None at the end of a segment."""


def ranges_at(device: Device, position: int) -> tuple[ReservedRange, ...]:
    """Return the memory that was reserved before the entry at a position; parts of a segment that grows are joined."""
    return ranges_at_each(device, (position,))[position]


def ranges_at_each(device: Device, positions: Sequence[int]) -> dict[int, tuple[ReservedRange, ...]]:
    """Return the memory that was reserved before the entries at some positions, which rise."""
    if not device.is_mapped:
        return dict.fromkeys(positions, ())
    trace, end = device.trace, len(device.trace)
    ranges = [ReservedRange(span.address, span.address + span.size, (span.stream, span.pool), span.is_small) for span in device.segments]
    ranges.sort(key=lambda span: (span.start, span.stop))
    out = {}
    for position in reversed(positions):
        _go_back(ranges, trace, position, end)
        # Only a segment that grows is one piece across what the driver gave at different times.
        out[position] = tuple(_joined(ranges)) if _has_growing_segments(device) else tuple(ranges)
        end = min(end, position)
    return out


def _go_back(ranges: list[ReservedRange], trace: Trace, begin: int, end: int) -> None:
    """Undo what the entries from begin to end did to the ranges."""
    for at in range(end - 1, begin - 1, -1):
        action = trace.actions[at]
        if action not in _OF_SEGMENTS:
            continue
        start, stop = trace.addresses[at], trace.addresses[at] + trace.sizes[at]
        if action in (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP):
            insort(ranges, ReservedRange(start, stop, (trace.streams[at], (0, 0)), stop - start == _SMALL_SEGMENT), key=_start)
        else:
            _cut(ranges, start, stop)


def _start(span: ReservedRange) -> int:
    return span.start


def _has_growing_segments(device: Device) -> bool:
    return Action.SEGMENT_MAP in device.trace.actions or any(segment.is_expandable for segment in device.segments)


def _cut(ranges: list[ReservedRange], start: int, stop: int) -> None:
    """Take the bytes from start to stop out of the ranges."""
    at = max(0, bisect_right(ranges, start, key=_start) - 1)
    while at < len(ranges) and ranges[at].start < stop:
        span = ranges[at]
        if span.stop <= start:
            at += 1
            continue
        rest = [ReservedRange(low, high, span.owner, span.is_small) for low, high in ((span.start, start), (stop, span.stop)) if low < high]
        ranges[at : at + 1] = rest
        at += len(rest)


def _joined(ranges: Sequence[ReservedRange]) -> Iterator[ReservedRange]:
    """Yield the ranges, those that touch and have one owner as one: parts of a segment that grows."""
    last: ReservedRange | None = None
    for span in ranges:
        if last is not None and last.stop == span.start and last.owner == span.owner and not span.is_small and not last.is_small:
            last = ReservedRange(last.start, span.stop, span.owner, span.is_small)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def free_pieces(ranges: Iterable[ReservedRange], live: Mapping[int, LiveBlock]) -> Iterator[FreePiece]:
    """Yield what is free in the ranges."""
    blocks = sorted(live.values(), key=lambda block: block.address)
    starts = [block.address for block in blocks]
    for span in ranges:
        inside = blocks[bisect_right(starts, span.start - 1) : bisect_right(starts, span.stop - 1)]
        edges = [(span.start, None), *((block.address + block.size, block.address) for block in inside)]
        begins = [*((block.address, block.address) for block in inside), (span.stop, None)]
        for (start, before), (stop, behind) in zip(edges, begins, strict=True):
            if stop > start:
                yield FreePiece(start, stop - start, span.owner, span.is_small, before, behind)


def is_small_request(size: int) -> bool:
    """Return whether the allocator serves a request from the pool of small blocks."""
    return size <= _SMALL


def driver_request(size: int) -> int:
    """Return what the allocator asks the driver for, when no free block holds a request (get_allocation_size)."""
    mib = 1 << 20
    if size <= _SMALL:
        return _SMALL_SEGMENT
    if size < 10 * mib:
        return 20 * mib
    return -(-size // (2 * mib)) * 2 * mib


def saved_free_pieces(device: Device) -> Iterator[int]:
    """Yield the sizes of the free blocks in the state that was saved, those of a segment that touch as one."""
    for segment in device.segments:
        run = 0
        for block in segment.blocks:
            run = 0 if block.is_live else run + block.size
            if run:
                yield run
