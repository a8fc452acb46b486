"""What the arithmetic says of a failed run, beside what was seen, and of a run that somebody describes without a log."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.estimate import Assumption, Estimate
from oomdoctor.case.event import Certainty
from oomdoctor.case.plan import Fits, MemoryBudget, Plans
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.case.text import Text


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
    stands_too_large: bool = False
    """Whether weights, gradients and states of the optimizer alone do not fit, whatever batch and length are."""
    at: AtFailure | None = None
    """None where the moment or the figures of the failure are not known."""


class Change(Struct, frozen=True, kw_only=True):
    """One change of a plan, in words and in keys."""

    title: Text
    settings: tuple[ProposedSetting, ...] = ()


class Told(Struct, frozen=True, kw_only=True):
    """What a text without a log says."""

    text: str
    """The line that says that memory ran out."""
    start: int
    """Where that line begins, in characters."""
    signature: str
    """What it says: one of rules/observations/told.yaml."""
    certainty: Certainty = Certainty.POSSIBLE
    """How sure the line is: likely where it says in plain words that memory was not enough."""
    framework: str | None = None
    """The program that the text names."""
    phase: str | None = None
    """What the run did, as far as the line tells."""
    model: str | None
    card: str | None
    """As it was written."""
    card_is_known: bool
    """Whether that means cards of one size."""
    method_is_told: bool
    """Whether it says what is done with the model."""
    plans: Plans[Estimate] | None = None
    """Whether it fits and what would make it fit; None where model, card or method are not told."""
    changes: tuple[Change, ...] = ()
    """The smallest plan, or what comes closest where nothing is enough."""
