"""What the arithmetic says about a failed run, compared with what was observed, and about a run described without a log."""

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
    """What was allocated, plus what was requested."""


class Expected(Struct, frozen=True, kw_only=True):
    """The estimate of a run that its log and its config describe."""

    estimate: Estimate
    """What the run needs at its peak for no request to fail."""
    budget: MemoryBudget | None
    """The GPU of the failure; None if the log does not give its size."""
    fits: Fits | None
    assumptions: tuple[Assumption, ...] = ()
    is_told: bool = False
    """Whether method, batch and length are known rather than taken from defaults."""
    stands_too_large: bool = False
    """Whether weights, gradients and optimizer states alone do not fit, whatever the batch and length."""
    at: AtFailure | None = None
    """None if the moment or the figures of the failure are unknown."""


class Change(Struct, frozen=True, kw_only=True):
    """One change in a plan, in words and in keys."""

    title: Text
    settings: tuple[ProposedSetting, ...] = ()


class Told(Struct, frozen=True, kw_only=True):
    """What a text without a log says."""

    text: str
    """The line that says that memory ran out."""
    start: int
    """The start of that line, in characters."""
    signature: str
    """What it states: one of rules/observations/told.yaml."""
    certainty: Certainty = Certainty.POSSIBLE
    """How certain the line is: likely if it says explicitly that there was not enough memory."""
    framework: str | None = None
    """The program that the text names."""
    phase: str | None = None
    """What the run was doing, as far as the line shows."""
    model: str | None
    card: str | None
    """As it was written."""
    card_is_known: bool
    """Whether that identifies GPUs of a single size."""
    method_is_told: bool
    """Whether it says what is done with the model."""
    plans: Plans[Estimate] | None = None
    """Whether it fits and what would make it fit; None if model, GPU or method are not stated."""
    changes: tuple[Change, ...] = ()
    """The smallest plan, or the closest one if nothing is enough."""
