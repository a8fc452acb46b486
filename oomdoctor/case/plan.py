"""Ways to make a training run fit or a server start: what to change, the resulting memory, and the cost."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.settings import ProposedSetting, Scalar
from oomdoctor.case.text import Text

Fits = Literal["yes", "no", "close"]
Risk = Literal["none", "slight", "different", "data"]
"""What a change does to the result: nothing, a little, it trains something else, it cuts the data."""
RISKS: tuple[Risk, ...] = ("none", "slight", "different", "data")
"""From the gentlest to the worst."""
Outcome = TypeVar("Outcome")
"""The result for a run or a server: an `Estimate` or a `Served`."""


class MemoryBudget(Struct, frozen=True):
    """How much of a GPU a run may use."""

    card: str
    total: int
    """Maximum number of bytes available to programs."""
    usable: int
    """Bytes that a plan may use, with a margin."""
    capability: tuple[int, ...] = ()
    """The compute capability; empty if unknown."""
    outside: int | None = None
    """Bytes that the process uses outside torch, if a log shows them; `usable` excludes them."""
    unexplained: int = 0
    """Bytes that a log shows and no setting explains; `usable` excludes them."""

    def minus_unexplained(self, size: int) -> MemoryBudget:
        """Subtract memory that the log shows and no setting explains; it will be in use again."""
        return replace(self, usable=max(0, self.usable - size), unexplained=size)


class Fit(Struct, frozen=True, kw_only=True):
    """Whether a run fits on a GPU."""

    budget: MemoryBudget
    needed: Estimate
    """What must be available to the run for no request to fail. nvidia-smi may eventually show more."""
    fits: Fits


class Otherwise(Struct, frozen=True, kw_only=True):
    """What a run needs if something unstated differs from what was assumed."""

    assumption: str
    """The id of the assumption."""
    text: Text
    """The alternative, as a clause: `with gradient checkpointing off`."""
    sets: tuple[tuple[str, Scalar], ...]
    """The same as settings, by the names that all frameworks share."""
    needed: Estimate
    fits: Fits | None
    """None if no GPU was specified."""
    turns: bool
    """Whether the verdict then changes, or would change beyond this limit."""
    is_limit: bool = False
    """Whether it is the largest number that fits, which may be more than what was assumed."""


class Measure(Struct, frozen=True, kw_only=True):
    """One change, under the id of its fix."""

    fix: str
    sets: tuple[tuple[str, Scalar], ...]
    """Settings by the names that all frameworks share, with their new values."""
    settings: tuple[ProposedSetting, ...] = ()
    """The same in the keys of the run's framework; empty if there is none."""


class Plan(Struct, Generic[Outcome], frozen=True, kw_only=True):
    """Measures that together make a run fit or a server start; all of them are necessary."""

    measures: tuple[Measure, ...]
    outcome: Outcome
    risk: Risk
    effort: int
    """Packages to install, files to add, host memory needed."""
    time: float | None = None
    """Time of an update, as a multiple of the current one, from the model in `planning/step_time.py`; None for a server."""


class Obstacle(Struct, Generic[Outcome], frozen=True, kw_only=True):
    """Why no combination of settings is enough, and what would be."""

    closest: Plan[Outcome]
    """The combination with the smallest shortfall."""
    fits: Fits
    """Whether that one fits: never `yes`, but it may be too close to tell."""
    card: str | None
    """The smallest GPU in the tables that is enough for it; None if none is."""
    card_now: str | None
    """The smallest GPU that is enough without any change."""
    cards: int | None
    """The smallest number of these GPUs that is enough; None if more of them do not help."""
    on_cards: Plan[Outcome] | None
    """The gentlest plan on that many of them."""


class BrokenPlan(Struct, Generic[Outcome], frozen=True, kw_only=True):
    """A plan that the run's files break, and where."""

    plan: Plan[Outcome]
    file: str
    key: str | None
    """The setting that prevents it; None if no single one does."""
    why: Text


class Plans(Struct, Generic[Outcome], frozen=True, kw_only=True):
    """The result of a search."""

    budget: MemoryBudget
    now: Outcome
    fits: Fits
    """Whether it fits as it is."""
    plans: tuple[Plan[Outcome], ...] = ()
    """The gentlest first."""
    by_hand: tuple[Plan[Outcome], ...] = ()
    """Others that the run's files can express only in part: the rest has to be written by a person."""
    broken: tuple[BrokenPlan[Outcome], ...] = ()
    """If there is no plan: those that would work but that the run's files break."""
    obstacle: Obstacle[Outcome] | None = None
    combinations: int = 0
    """How many combinations were evaluated."""
    refusals: tuple[StartupRefusal, ...] = ()
    """Settings of the current run with which its program does not start, whatever memory is available."""
