"""The memory needed for every combination of batch and length, and the largest that fit."""

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
"""A length is rounded down to a multiple of this many tokens."""


class SweepCell(Struct, frozen=True, kw_only=True):
    """One batch with one length."""

    batch: int
    """Samples on one GPU in one pass; for a server, concurrent requests."""
    length: int
    """Tokens of a sample; for a server, of a request."""
    needed: ByteRange
    """Bytes on one GPU."""
    fits: Fits | None
    """None if no GPU was specified."""


class SweepLimit(Struct, frozen=True, kw_only=True):
    """The largest size that certainly fits in combination with another one."""

    size: int | None
    """None if not even the smallest fits."""
    is_open: bool = False
    """Whether larger ones than that were not considered, and may fit too."""


class Sweep(Struct, frozen=True, kw_only=True):
    """A table of the memory that a run needs."""

    setup: Setup
    """The run; its batch and length are those of the table."""
    budget: MemoryBudget | None
    """The GPU, if one was specified."""
    server: str | None
    """The server, if it reserves a share of the GPU in advance; memory needed is then its use outside a cache for these requests."""
    batches: tuple[int, ...]
    lengths: tuple[int, ...]
    cells: tuple[SweepCell, ...]
    """Batch by batch, and within each, length by length."""
    longest: tuple[SweepLimit, ...]
    """For each batch, the largest length that fits; empty if no GPU was specified."""
    largest: tuple[SweepLimit, ...]
    """For each length, the largest batch that fits; empty if no GPU was specified."""
    assumptions: tuple[Assumption, ...] = ()
    """Assumptions other than batch and length."""
    deciding: frozenset[str] = frozenset()
    """The ids of those that change the memory needed."""

    def row(self, batch: int) -> tuple[SweepCell, ...]:
        """Return the cells of one batch."""
        return tuple(cell for cell in self.cells if cell.batch == batch)


Weigh = Callable[[int, int], tuple[ByteRange, Fits | None]]
"""Return the memory needed for a batch with a length, and whether that fits."""


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
    """Return a server's memory with a cache that holds this many full-length requests, and whether it starts and holds them.

    The share is used regardless of how much is needed: what counts is whether the cache that it leaves is large enough.
    """
    cache_bytes = requests * (served.request or 0)
    parts = (*served.terms, *served.beside)
    need = ByteRange(*(cache_bytes + sum(sizes) for sizes in zip(*((part.bytes, part.low, part.high) for part in parts), strict=True)))
    if served.starts == "no" or served.cache.high < cache_bytes:
        return need, "no"
    return need, "yes" if served.starts == "yes" and served.cache.low >= cache_bytes else "close"
