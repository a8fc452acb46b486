"""`oomdoctor/alternatives/v1`: one run on several cards or in several formats. Additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.plan import Fits
from oomdoctor.planning.sizing.alternatives import Alternatives, Candidate, Compared
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.estimate import assumptions
from oomdoctor.report.wire.estimate_v1 import AssumptionV1, RangeV1
from oomdoctor.report.wire.plan_v1 import BudgetV1
from oomdoctor.report.wording.wording import Wording

Tag = Literal["oomdoctor/alternatives/v1"]


class CandidateV1(Struct, frozen=True, kw_only=True):
    """One card, so many of it, or one format."""

    name: str
    gpus: int
    needed_bytes: RangeV1 | None
    """What each card must have; null where the program refuses to start like this."""
    fits: Fits | None
    """Null where no card was named."""
    longest: int | None
    """Tokens of the longest sample or request that surely fits, rounded down to a multiple of 256; null where none does."""


class AlternativesV1(Struct, frozen=True, kw_only=True):
    """One run on several cards, or with its weights in several formats. Sizes are bytes of one card."""

    schema: Tag
    compared: Compared
    model: str
    card: BudgetV1 | None
    """The card that formats are held against."""
    server: str | None
    """Of a server only: a need is what it takes beside a cache for one request."""
    spread: str | None
    """How several cards share the run where nobody said it."""
    rows: tuple[CandidateV1, ...]
    assumptions: tuple[AssumptionV1, ...]


def convert_alternatives(alternatives: Alternatives, wording: Wording) -> AlternativesV1:
    """Convert a table of alternatives."""
    card = alternatives.budget
    return AlternativesV1(
        schema="oomdoctor/alternatives/v1",
        compared=alternatives.compared,
        model=clean_line(alternatives.setup.shape.name, 400),
        card=None if card is None else BudgetV1(name=clean_line(card.card, 200), bytes=card.total, usable_bytes=card.usable),
        server=alternatives.server,
        spread=alternatives.spread,
        rows=tuple(_candidate(cell) for row in alternatives.rows for cell in row),
        assumptions=assumptions(alternatives.assumptions, wording),
    )


def _candidate(cell: Candidate) -> CandidateV1:
    need = cell.needed
    return CandidateV1(
        name=clean_line(cell.name, 200),
        gpus=cell.cards,
        needed_bytes=None if need is None else RangeV1(expected=need.expected, low=need.low, high=need.high),
        fits=cell.fits,
        longest=None if cell.longest is None else cell.longest.size,
    )
