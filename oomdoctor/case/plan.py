"""Ways to make a training run fit or a server start: what to change, what it takes then, what that costs."""

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
"""What a run or a server comes to: an `Estimate` or a `Served`."""


class MemoryBudget(Struct, frozen=True):
    """What a run may take of a card."""

    card: str
    total: int
    """Bytes that programs can have at most."""
    usable: int
    """Bytes that a plan may use, with a margin."""
    capability: tuple[int, ...] = ()
    """The compute capability; empty where it is unknown."""
    outside: int | None = None
    """Bytes that the process takes outside of torch, where a log shows them; `usable` is without them."""
    unexplained: int = 0
    """Bytes that a log shows and no setting explains; `usable` is without them."""

    def minus_unexplained(self, size: int) -> MemoryBudget:
        """Subtract memory that the log shows and no setting explains; it will be in use again."""
        return replace(self, usable=max(0, self.usable - size), unexplained=size)


class Fit(Struct, frozen=True, kw_only=True):
    """Whether a run fits a card."""

    budget: MemoryBudget
    needed: Estimate
    """What the run must find there so that no request fails. nvidia-smi can show more in the end."""
    fits: Fits


class Otherwise(Struct, frozen=True, kw_only=True):
    """What a run needs where something that nobody said is otherwise than assumed."""

    assumption: str
    """The id of the assumption."""
    text: Text
    """The other way, as a clause: `with gradient checkpointing off`."""
    sets: tuple[tuple[str, Scalar], ...]
    """The same as settings by the names that all frameworks share."""
    needed: Estimate
    fits: Fits | None
    """None where no card was named."""
    turns: bool
    """Whether the verdict is another one then, or would be beyond."""
    is_limit: bool = False
    """Whether it is the largest number that fits, which may be more than what was assumed."""


class Measure(Struct, frozen=True, kw_only=True):
    """One change, under the id of its fix."""

    fix: str
    sets: tuple[tuple[str, Scalar], ...]
    """Settings by the names that all frameworks share, with their new values."""
    settings: tuple[ProposedSetting, ...] = ()
    """The same in the keys of the run's framework; empty where there is none."""


class Plan(Struct, Generic[Outcome], frozen=True, kw_only=True):
    """Measures that together make a run fit or a server start; without any one of them it would not."""

    measures: tuple[Measure, ...]
    outcome: Outcome
    risk: Risk
    effort: int
    """Things to install, files to add, host memory to have."""
    time: float | None = None
    """Time of an update, as a multiple of today's, by the model in `planning/step_time.py`; None for a server."""


class Obstacle(Struct, Generic[Outcome], frozen=True, kw_only=True):
    """Why no combination of settings is enough, and what would be."""

    closest: Plan[Outcome]
    """The combination that lacks the least memory."""
    fits: Fits
    """Whether that one fits: never `yes`, but it may be too close to say."""
    card: str | None
    """The smallest card of the tables that is enough for it; None where none is."""
    card_now: str | None
    """The smallest card that is enough without any change."""
    cards: int | None
    """The smallest number of these cards that is enough; None where more of them do not help."""
    on_cards: Plan[Outcome] | None
    """The gentlest plan on so many of them."""


class BrokenPlan(Struct, Generic[Outcome], frozen=True, kw_only=True):
    """A plan that the files of the run break, and where."""

    plan: Plan[Outcome]
    file: str
    key: str | None
    """The setting that stands against it; None where no single one does."""
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
    """Others, of which the run's files take a part at most: the rest is for a person to write."""
    broken: tuple[BrokenPlan[Outcome], ...] = ()
    """Where there is no plan: those that would do, and that the run's files break."""
    obstacle: Obstacle[Outcome] | None = None
    combinations: int = 0
    """How many combinations were decided."""
    refusals: tuple[StartupRefusal, ...] = ()
    """Settings of the run as it is for which its program does not start, whatever memory there is."""
