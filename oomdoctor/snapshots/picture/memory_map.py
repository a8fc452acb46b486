"""The segments of a device at one moment: which pieces of them somebody holds, and which are free."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from oomdoctor.snapshots.address_space import ReservedRange
from oomdoctor.snapshots.picture.course import Owner
from oomdoctor.snapshots.replay import LiveBlock

_SEGMENTS = 48
_PIECES = 1900
"""Of all segments together; smaller pieces are drawn as one with their neighbours."""
FREE, MIXED = -1, -2


class MapPiece(Struct, frozen=True):
    """Bytes of a segment that one holder has, that are free, or that several share."""

    size: int
    owner: int
    """The number of the holder in the map; FREE or MIXED."""


class MapSegment(Struct, frozen=True):
    """A stretch of reserved memory, from its start to its end."""

    size: int
    is_small: bool
    """Whether it serves requests up to 1 MiB."""
    is_shared: bool
    """Whether it belongs to the default stream and the shared pool."""
    pieces: tuple[MapPiece, ...]


class MemoryMap(Struct, frozen=True):
    """The largest segments of a device."""

    segments: tuple[MapSegment, ...]
    left_out: int
    """Segments beside them."""
    left_out_bytes: int


def memory_map(
    ranges: Sequence[ReservedRange], live: Mapping[int, LiveBlock], owner_of: Mapping[int, Owner], owners: Sequence[Owner]
) -> MemoryMap:
    """Return the map of the ranges with the blocks that live in them.

    `owner_of` are the owners of the blocks by address, `owners` those that are told apart.
    """
    shown = sorted(sorted(ranges, key=lambda span: span.start - span.stop)[:_SEGMENTS], key=lambda span: span.start)
    numbers = {owner: number for number, owner in enumerate(owners)}
    blocks = sorted(live.values(), key=lambda block: block.address)
    starts = [block.address for block in blocks]
    drawn = [
        list(_pieces(span, blocks[bisect_left(starts, span.start) : bisect_left(starts, span.stop)], owner_of, numbers)) for span in shown
    ]
    least = _least(size for pieces in drawn for size, _ in pieces)
    segments = (
        MapSegment(span.stop - span.start, span.is_small, span.owner in (None, (0, (0, 0))), tuple(_merged(pieces, least)))
        for span, pieces in zip(shown, drawn, strict=True)
    )
    rest = sum(span.stop - span.start for span in ranges) - sum(span.stop - span.start for span in shown)
    return MemoryMap(tuple(segments), len(ranges) - len(shown), rest)


def _pieces(
    span: ReservedRange, blocks: Iterable[LiveBlock], owner_of: Mapping[int, Owner], numbers: Mapping[Owner, int]
) -> Iterator[tuple[int, int]]:
    """Yield the sizes and owners of what stands in a range, neighbours of one owner as one."""
    at, pieces = span.start, list[tuple[int, int]]()
    for block in blocks:
        stop = min(block.address + block.size, span.stop)
        if block.address > at:
            pieces.append((block.address - at, FREE))
        if stop > at:
            pieces.append((stop - max(at, block.address), numbers.get(owner_of[block.address], MIXED)))
            at = stop
    if at < span.stop:
        pieces.append((span.stop - at, FREE))
    for owner, together in groupby(pieces, key=lambda piece: piece[1]):
        yield sum(size for size, _ in together), owner


def _least(sizes: Iterable[int]) -> int:
    """Return the size from which on pieces are drawn by themselves."""
    largest = sorted(sizes, reverse=True)
    return largest[_PIECES // 2] if len(largest) > _PIECES else 0


def _merged(pieces: Sequence[tuple[int, int]], least: int) -> Iterator[MapPiece]:
    """Yield the pieces of a range, those below a size with their neighbours as one; it is free only where all of it is."""
    for is_small, together in groupby(pieces, key=lambda piece: piece[0] <= least):
        if not is_small or not least:
            yield from (MapPiece(size, owner) for size, owner in together)
            continue
        parts = list(together)
        owners = {owner for _, owner in parts}
        yield MapPiece(sum(size for size, _ in parts), owners.pop() if len(owners) == 1 else MIXED)
