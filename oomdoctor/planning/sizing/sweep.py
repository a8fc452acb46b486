"""What a run needs for every batch with every length, and the largest that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.plan import Fits, MemoryBudget
from oomdoctor.case.serving import ByteRange, Served
from oomdoctor.case.setup import Setup
from oomdoctor.planning.sizing.axes import LARGEST
from oomdoctor.planning.sizing.largest import largest

_STEP = 256
"""Tokens by which a length is rounded down."""


class SweepCell(Struct, frozen=True, kw_only=True):
    """One batch with one length."""

    batch: int
    """Samples on one card in one pass; of a server, requests at a time."""
    length: int
    """Tokens of a sample; of a server, of a request."""
    needed: ByteRange
    """Bytes of one card."""
    fits: Fits | None
    """None where no card was named."""


class SweepLimit(Struct, frozen=True, kw_only=True):
    """The largest size that surely fits beside another one."""

    size: int | None
    """None where not even the smallest fits."""
    is_open: bool = False
    """Whether larger ones than that were not looked at, and may fit too."""


class Sweep(Struct, frozen=True, kw_only=True):
    """A table of what a run needs."""

    setup: Setup
    """The run; its batch and length are those of the table."""
    budget: MemoryBudget | None
    """The card, where one was named."""
    server: str | None
    """The server where it takes a share of the card in advance; then a need is what it takes beside a cache for these requests."""
    batches: tuple[int, ...]
    lengths: tuple[int, ...]
    cells: tuple[SweepCell, ...]
    """Batch by batch, in each length by length."""
    longest: tuple[SweepLimit, ...]
    """For each batch, the largest length that fits; empty where no card was named."""
    largest: tuple[SweepLimit, ...]
    """For each length, the largest batch that fits; empty where no card was named."""
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed beside batch and length."""
    deciding: frozenset[str] = frozenset()
    """The ids of those that move the needs."""

    def row(self, batch: int) -> tuple[SweepCell, ...]:
        """Return the cells of one batch."""
        return tuple(cell for cell in self.cells if cell.batch == batch)


Weigh = Callable[[int, int], tuple[ByteRange, Fits | None]]
"""Return what a batch with a length needs, and whether that fits."""


def cells(weigh: Weigh, batches: Sequence[int], lengths: Sequence[int]) -> tuple[SweepCell, ...]:
    """Return every combination."""
    judged = ((batch, length, *weigh(batch, length)) for batch in batches for length in lengths)
    return tuple(SweepCell(batch=batch, length=length, needed=need, fits=fits) for batch, length, need, fits in judged)


def limits(weigh: Weigh, batches: Sequence[int], lengths: Sequence[int]) -> tuple[tuple[SweepLimit, ...], tuple[SweepLimit, ...]]:
    """Return the largest length for each batch, and the largest batch for each length."""

    @cache
    def surely_fits(batch: int, length: int) -> bool:
        return weigh(batch, length)[1] == "yes"

    def longest(batch: int) -> SweepLimit:
        return _limit(lambda length: surely_fits(batch, length), _STEP, LARGEST["length"])

    def most(length: int) -> SweepLimit:
        return _limit(lambda batch: surely_fits(batch, length), 1, LARGEST["batch"])

    return tuple(map(longest, batches)), tuple(map(most, lengths))


def _limit(holds: Callable[[int], bool], step: int, most: int) -> SweepLimit:
    size = largest(holds, step, most)
    return SweepLimit(size=size, is_open=size == most)


def served_need(served: Served, requests: int) -> tuple[ByteRange, Fits]:
    """Return what a server takes with a cache that holds so many requests of full length, and whether it starts and holds them.

    The share is taken whatever is needed of it: what counts is whether the cache that it leaves is large enough.
    """
    cache_bytes = requests * (served.request or 0)
    parts = (*served.terms, *served.beside)
    need = ByteRange(*(cache_bytes + sum(sizes) for sizes in zip(*((part.bytes, part.low, part.high) for part in parts), strict=True)))
    if served.starts == "no" or served.cache.high < cache_bytes:
        return need, "no"
    return need, "yes" if served.starts == "yes" and served.cache.low >= cache_bytes else "close"
