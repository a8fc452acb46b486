"""`oomdoctor/sweep/v1`: what a run needs for every batch with every length. Additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.plan import Fits
from oomdoctor.planning.sizing.sweep import Sweep, SweepCell, SweepLimit
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.estimate import assumptions
from oomdoctor.report.wire.estimate_v1 import AssumptionV1, RangeV1
from oomdoctor.report.wire.plan_v1 import BudgetV1
from oomdoctor.report.wording.wording import Wording

Tag = Literal["oomdoctor/sweep/v1"]


class SweepCellV1(Struct, frozen=True, kw_only=True):
    """One batch with one length."""

    batch: int
    length: int
    needed_bytes: RangeV1
    """What must be there so that no request fails; of a server, what it takes beside a cache for these requests."""
    fits: Fits | None
    """Null where no card was named."""


class LargestLengthV1(Struct, frozen=True, kw_only=True):
    """The largest length that surely fits beside a batch."""

    batch: int
    length: int | None
    """Rounded down to a multiple of 256; null where none fits."""
    open: bool
    """Whether longer ones were not looked at."""


class LargestBatchV1(Struct, frozen=True, kw_only=True):
    """The largest batch that surely fits beside a length."""

    length: int
    batch: int | None
    """Null where none fits."""
    open: bool
    """Whether larger ones were not looked at."""


class SweepV1(Struct, frozen=True, kw_only=True):
    """What a run needs for every batch with every length. Sizes are bytes of one card."""

    schema: Tag
    model: str
    gpus: int
    card: BudgetV1 | None
    """The card that was named."""
    server: str | None
    """Of a server only: batch is requests at a time then, and length is tokens of each."""
    batches: tuple[int, ...]
    lengths: tuple[int, ...]
    cells: tuple[SweepCellV1, ...]
    largest_lengths: tuple[LargestLengthV1, ...]
    """Empty where no card was named."""
    largest_batches: tuple[LargestBatchV1, ...]
    """Empty where no card was named."""
    assumptions: tuple[AssumptionV1, ...]


def convert_sweep(sweep: Sweep, wording: Wording) -> SweepV1:
    """Convert a sweep."""
    card = sweep.budget
    return SweepV1(
        schema="oomdoctor/sweep/v1",
        model=clean_line(sweep.setup.shape.name, 400),
        gpus=sweep.setup.layout.cards,
        card=None if card is None else BudgetV1(name=clean_line(card.card, 200), bytes=card.total, usable_bytes=card.usable),
        server=sweep.server,
        batches=sweep.batches,
        lengths=sweep.lengths,
        cells=tuple(map(_cell, sweep.cells)),
        largest_lengths=tuple(_length(*limit) for limit in zip(sweep.batches, sweep.longest)),
        largest_batches=tuple(_batch(*limit) for limit in zip(sweep.lengths, sweep.largest)),
        assumptions=assumptions(sweep.assumptions, wording),
    )


def _cell(cell: SweepCell) -> SweepCellV1:
    need = RangeV1(expected=cell.needed.expected, low=cell.needed.low, high=cell.needed.high)
    return SweepCellV1(batch=cell.batch, length=cell.length, needed_bytes=need, fits=cell.fits)


def _length(batch: int, limit: SweepLimit) -> LargestLengthV1:
    return LargestLengthV1(batch=batch, length=limit.size, open=limit.is_open)


def _batch(length: int, limit: SweepLimit) -> LargestBatchV1:
    return LargestBatchV1(length=length, batch=limit.size, open=limit.is_open)
