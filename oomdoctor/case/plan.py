"""Ways to make a run fit: what to change, what it takes then, what that costs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.settings import ProposedSetting, Scalar

Fits = Literal["yes", "no", "close"]
Risk = Literal["none", "slight", "different", "data"]
"""What a change does to the result: nothing, a little, it trains something else, it cuts the data."""


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


class Fit(Struct, frozen=True, kw_only=True):
    """A run held against a card."""

    room: MemoryBudget
    needed: Estimate
    """What the run must find there so that no request fails. nvidia-smi can show more in the end."""
    fits: Fits


class Measure(Struct, frozen=True, kw_only=True):
    """One thing that is changed, under the id of its fix."""

    fix: str
    sets: tuple[tuple[str, Scalar], ...]
    """Settings by the names that all frameworks share, with their new values."""
    settings: tuple[ProposedSetting, ...] = ()
    """The same in the keys of the run's framework; empty where there is none."""


class Plan(Struct, frozen=True, kw_only=True):
    """Measures that together make a run fit; without any one of them it would not."""

    measures: tuple[Measure, ...]
    estimate: Estimate
    time: float
    """Time of an update, as a multiple of today's, by the model in `planning/speed.py`."""
    risk: Risk
    effort: int
    """Things to install, files to add, host memory to have."""


class Obstacle(Struct, frozen=True, kw_only=True):
    """Why nothing fits, and what would."""

    closest: Plan
    """The combination that needs the least."""
    term: str
    """The largest part of its peak."""
    fits: Fits
    """Whether that one fits: never `yes`, but it may be too close to say."""
    card: str | None
    """The smallest card of the tables that would do for it; None where none would."""
    card_now: str | None
    """The smallest card on which the run would fit as it is."""
    cards: int | None
    """The smallest number of these cards that would do; None where more of them do not help."""
    on_cards: Plan | None
    """The gentlest plan on so many of them."""


class Plans(Struct, frozen=True, kw_only=True):
    """What a search found."""

    room: MemoryBudget
    now: Estimate
    fits: Fits
    """Whether the run fits as it is."""
    plans: tuple[Plan, ...] = ()
    """The gentlest first."""
    wall: Obstacle | None = None
    combinations: int = 0
    """How many combinations were decided, most of them without being looked at."""
