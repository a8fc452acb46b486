"""Why a request did not fit.

What the allocator does before it fails (c10/cuda/CUDACachingAllocator.cpp, `malloc`): it looks for a free block in the pool and
stream of the request, asks the driver, gives its unused segments back, and asks again. So what counts is what lay free, where,
and what the driver had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import NamedTuple

from msgspec import Struct

from oomdoctor.snapshots.address_space import FreePiece, Owner, ReservedRange, driver_request, free_pieces, is_small_request, ranges_at_each
from oomdoctor.snapshots.recording import Action, Device
from oomdoctor.snapshots.replay import LiveBlock, Totals, live_at_each
from oomdoctor.snapshots.sites import Categories, own_frame
from oomdoctor.snapshots.stacks import Stacks

TOO_MUCH_LIVE, LARGE_REQUEST, FRAGMENTATION, OTHER_POOL = "too-much-live", "one-large-request", "fragmentation", "other-pool"
LIMIT, OTHERS, UNKNOWN = "limit", "others-on-the-card", "unknown"
_LARGE = 0.5
"""A request is large that asks for this share of what may be had at all."""
_OTHERS = 0.25
"""Of a card's bytes, what must be neither ours nor free before others are named; contexts and libraries take less."""
_MOST_BESIDE = 8
MOST_REFUSALS = 64
"""The last ones are explained: a program that tries again and again fails thousands of times."""


class Neighbour(Struct, frozen=True):
    """A line whose blocks stand between free pieces: how many of them, and their bytes."""

    site: str | None
    category: str
    size: int
    blocks: int


class Refusal(Struct, frozen=True):
    """A request that failed, and what lay free then. Bytes."""

    position: int
    requested: int
    reserved: int
    device_free: int
    live_requested: int
    largest_free_block: int | None
    """In the pool and stream of the request; None where the file does not tell where blocks lay."""
    free_in_pool: int
    free_elsewhere: int
    """Free bytes in segments of other streams and pools, which this request may not use."""
    survived: bool
    why: str
    beside: tuple[Neighbour, ...]
    """Who owns the blocks that stand between the largest free pieces, where these would hold the request together."""
    site: str | None
    """The line that asked, as far as it was recorded."""
    category: str


def refusals(device: Device, sums: Totals, total: int | None, stacks: Stacks, categories: Categories) -> tuple[Refusal, ...]:
    """Return the failed requests of a trace. `total` is what the card has, where somebody knows."""
    positions = list(compress(range(len(device.trace)), device.trace.where(Action.OOM)))[-MOST_REFUSALS:]
    if not positions:
        return ()
    ranges = ranges_at_each(device, positions)
    states = (_Moment(device, at, live, ranges[at], sums.before(at)) for at, live in live_at_each(device, positions))
    return tuple(_refusal(moment, total, stacks, categories) for moment in states)


class _Moment(NamedTuple):
    """What there was before the entry at a position."""

    device: Device
    at: int
    live: Mapping[int, LiveBlock]
    ranges: tuple[ReservedRange, ...]
    totals: tuple[int, int]


def _refusal(moment: _Moment, total: int | None, stacks: Stacks, categories: Categories) -> Refusal:
    trace, at, live = moment.device.trace, moment.at, moment.live
    size, driver_free = trace.sizes[at], trace.addresses[at]
    owner: Owner = (trace.streams[at], (0, 0))
    free = list(free_pieces(moment.ranges, live))
    own = [piece for piece in free if _serves(piece, owner, size)]
    elsewhere = sum(piece.size for piece in free if piece.owner is not None and piece.owner != owner)
    largest, in_pool = max((piece.size for piece in own), default=0), sum(piece.size for piece in own)
    requested, reserved = moment.totals
    why = reason(size, driver_free, reserved, largest, in_pool, elsewhere, total) if moment.device.is_mapped else UNKNOWN
    beside = tuple(_beside(own, live, stacks, categories)) if why == FRAGMENTATION else ()
    survived = at < trace.actions.tobytes().rfind(Action.ALLOC)
    asking = own_frame(stacks, trace.stacks[at])
    return Refusal(
        position=at,
        requested=size,
        reserved=reserved,
        device_free=driver_free,
        live_requested=requested,
        largest_free_block=largest if moment.device.is_mapped else None,
        free_in_pool=in_pool,
        free_elsewhere=elsewhere,
        survived=survived,
        why=why,
        beside=beside,
        site=None if asking is None else str(asking),
        category=categories.of(trace.stacks[at], at),
    )


def _beside(own: list[FreePiece], live: Mapping[int, LiveBlock], stacks: Stacks, categories: Categories) -> Iterator[Neighbour]:
    """Yield who owns the blocks beside the largest free pieces, those with most blocks first."""
    largest = sorted(own, key=lambda piece: -piece.size)[:_MOST_BESIDE]
    addresses = dict.fromkeys(address for piece in largest for address in (piece.before, piece.behind) if address is not None)
    owners: dict[tuple[str | None, str], list[LiveBlock]] = {}
    for block in map(live.__getitem__, addresses):
        frame = own_frame(stacks, block.stack)
        owners.setdefault((None if frame is None else str(frame), categories.of(block.stack, block.born)), []).append(block)
    for (site, category), blocks in sorted(owners.items(), key=lambda owner: -len(owner[1])):
        yield Neighbour(site, category, sum(block.requested for block in blocks), len(blocks))


def _serves(piece: FreePiece, owner: Owner, size: int) -> bool:
    return piece.owner == owner and piece.is_small == is_small_request(size)


def reason(size: int, driver_free: int, reserved: int, largest: int, in_pool: int, elsewhere: int, total: int | None) -> str:
    """Return the reason by what would have had to be otherwise."""
    needed = driver_request(size)
    if driver_free >= needed:
        return LIMIT  # the driver had it: a fraction of the card is set, or somebody took it in between
    if largest >= size:
        return UNKNOWN
    capacity = reserved + driver_free if total is None else total
    if total is not None and total - reserved - driver_free > _OTHERS * total:
        return OTHERS
    if in_pool + driver_free >= size and in_pool > _worth(reserved):
        return FRAGMENTATION
    if elsewhere + in_pool + driver_free >= size and elsewhere > _worth(reserved):
        return OTHER_POOL
    return LARGE_REQUEST if size >= _LARGE * capacity else TOO_MUCH_LIVE


def _worth(reserved: int) -> float:
    """Return how many free bytes are more than what any run has between its blocks."""
    return 0.1 * reserved
