"""One run on several cards, or with its weights in several formats: what each takes of a card and whether it fits."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.plan import Fits, MemoryBudget
from oomdoctor.case.serving import ByteRange
from oomdoctor.case.setup import Setup
from oomdoctor.planning.sizing.sweep import SweepLimit

Compared = Literal["cards", "formats"]
"""What the rows differ in."""


class Candidate(Struct, frozen=True, kw_only=True):
    """One card, so many of it, or one format."""

    name: str
    cards: int
    """How many cards share the run."""
    needed: ByteRange | None
    """Bytes of one card; None where the program refuses to start like this, whatever memory there is."""
    fits: Fits | None
    """None where no card was named."""
    longest: SweepLimit | None = None
    """The longest sample, or request, that surely fits; None where it was not looked for."""


class Alternatives(Struct, frozen=True, kw_only=True):
    """A table of alternatives."""

    compared: Compared
    setup: Setup
    """The run as it was asked about, on one card."""
    budget: MemoryBudget | None
    """The card that formats are held against."""
    server: str | None
    """The server where it takes a share of the card in advance; then a need is what it takes beside a cache for one request."""
    spread: str | None
    """How several cards share the run where nobody said it: `zero3` or `tensor parallel`."""
    rows: tuple[tuple[Candidate, ...], ...]
    """A row for each card, with a cell for each number of them; of formats one cell a row."""
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed in all of them."""

    @property
    def fitting(self) -> tuple[Candidate, ...]:
        """Those that surely fit."""
        return tuple(cell for row in self.rows for cell in row if cell.fits == "yes")
