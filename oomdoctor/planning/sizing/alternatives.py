"""One run on several GPUs, or with its weights in several formats: the memory each uses on a GPU and whether it fits."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.plan import Fits, MemoryBudget
from oomdoctor.case.serving import ByteRange
from oomdoctor.case.setup import Setup
from oomdoctor.planning.sizing.sweep import SweepLimit

Compared = Literal["cards", "formats"]
"""How the rows differ."""


class Candidate(Struct, frozen=True, kw_only=True):
    """One GPU, a number of them, or one format."""

    name: str
    cards: int
    """How many GPUs share the run."""
    needed: ByteRange | None
    """Bytes on one GPU; None if the program refuses to start like this, whatever memory is available."""
    fits: Fits | None
    """None if no GPU was specified."""
    longest: SweepLimit | None = None
    """The longest sample, or request, that certainly fits; None if it was not searched for."""


class Alternatives(Struct, frozen=True, kw_only=True):
    """A table of alternatives."""

    compared: Compared
    setup: Setup
    """The run as requested, on one GPU."""
    budget: MemoryBudget | None
    """The GPU that formats are checked against."""
    server: str | None
    """The server, if it reserves a share of the GPU in advance; memory needed is then its use outside a cache for one request."""
    spread: str | None
    """How several GPUs share the run if not specified: `zero3` or `tensor parallel`."""
    rows: tuple[tuple[Candidate, ...], ...]
    """A row for each GPU, with a cell for each number of them; for formats, one cell per row."""
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed in all of them."""

    @property
    def fitting(self) -> tuple[Candidate, ...]:
        """Those that certainly fit."""
        return tuple(cell for row in self.rows for cell in row if cell.fits == "yes")
