"""The structures of `oomdoctor/plan/v1`: ways to make a run fit or a server start. Additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from oomdoctor.case.plan import Fits, Risk
from oomdoctor.case.settings import Scalar
from oomdoctor.report.wire.estimate_v1 import AssumptionV1, RangeV1, ServerV1
from oomdoctor.report.wire.settings_v1 import PlannedSettingV1

Tag = Literal["oomdoctor/plan/v1"]


class MeasureV1(Struct, frozen=True, kw_only=True):
    """One thing that is changed, under the id of its fix."""

    fix: str
    sets: dict[str, Scalar]
    """Settings by the names that all frameworks share."""
    settings: tuple[PlannedSettingV1, ...]
    """The same in the keys of the run's framework."""


class BudgetV1(Struct, frozen=True, kw_only=True):
    """The card, and what a plan may use of it."""

    name: str
    bytes: int
    usable_bytes: int


class NowV1(Struct, frozen=True, kw_only=True):
    """The run as it is: a training run has sizes, a server `server`."""

    per_gpu_bytes: RangeV1 | UnsetType = UNSET
    host_bytes: int | UnsetType = UNSET
    peak: str | UnsetType = UNSET
    terms: dict[str, int] | UnsetType = UNSET
    server: ServerV1 | UnsetType = UNSET


class PlanV1(Struct, frozen=True, kw_only=True):
    """Measures that together make a run fit or a server start."""

    measures: tuple[MeasureV1, ...]
    per_gpu_bytes: RangeV1 | UnsetType = UNSET
    host_bytes: int | UnsetType = UNSET
    peak: str | UnsetType = UNSET
    terms: dict[str, int] | UnsetType = UNSET
    server: ServerV1 | UnsetType = UNSET
    """What the plan makes of the card, for a server."""
    time: float | UnsetType = UNSET
    """Time of an update, as a multiple of today's."""
    risk: Risk
    effort: int
    """Things to install, files to add, host memory to have."""


class ObstacleV1(Struct, frozen=True, kw_only=True):
    """Why nothing fits, and what would."""

    closest: PlanV1
    term: str | UnsetType = UNSET
    """The largest part of its peak."""
    fits: Fits | UnsetType = UNSET
    card: str | None
    """The smallest card of the tables that would do for it."""
    card_as_it_is: str | UnsetType | None = UNSET
    """The smallest card on which the run would fit as it is."""
    gpus: int | None
    """The smallest number of these cards that would do."""
    on_gpus: PlanV1 | UnsetType | None = UNSET
    """The gentlest plan on so many of them."""


class BrokenPlanV1(Struct, frozen=True, kw_only=True):
    """A plan that would do and that the files of the run break."""

    plan: PlanV1
    file: str
    key: str | None
    """The setting that stands against it; null where no single one does."""
    why: str


class PlansV1(Struct, frozen=True, kw_only=True):
    """What a search for plans found. Sizes are bytes of one card; `host_` ones are those of the machine."""

    schema: Tag
    model: str
    gpus: int
    card: BudgetV1
    fits: Fits
    """Whether the run fits, or the server starts, as it is."""
    now: NowV1
    plans: tuple[PlanV1, ...]
    """The gentlest first."""
    wall: ObstacleV1 | None
    combinations: int
    """How many combinations were decided."""
    assumptions: tuple[AssumptionV1, ...]
    by_hand: tuple[PlanV1, ...] = ()
    """Others, of which the files of the run take a part at most."""
    broken: tuple[BrokenPlanV1, ...] = ()
    """Where there is no plan: those that would do, and that the files of the run break."""
