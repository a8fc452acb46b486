"""What the arithmetic says of a failed run, beside what was seen."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.estimate import Assumption, Estimate
from oomdoctor.case.plan import Fits, MemoryBudget


class AtFailure(Struct, frozen=True, kw_only=True):
    """The live tensors at the moment of the failure, in bytes."""

    phase: str
    expected: int
    low: int
    high: int
    seen: int
    """What was allocated, and what was asked for."""


class Expected(Struct, frozen=True, kw_only=True):
    """The estimate of a run that its log and its config describe."""

    estimate: Estimate
    """What the run needs at its peak so that no request fails."""
    budget: MemoryBudget | None
    """The card of the failure; None where the log does not tell its size."""
    fits: Fits | None
    assumptions: tuple[Assumption, ...] = ()
    is_told: bool = False
    """Whether method, batch and length are known and not taken from defaults."""
    at: AtFailure | None = None
    """None where the moment or the figures of the failure are not known."""
