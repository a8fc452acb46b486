"""Convert plans for a training run to `oomdoctor/plan/v1`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET

from oomdoctor.case.estimate import Assumption, Estimate
from oomdoctor.case.plan import BrokenPlan, Measure, Obstacle, Outcome, Plan, Plans
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.estimate import assumptions, size_range
from oomdoctor.report.wire.plan_v1 import BrokenPlanV1, BudgetV1, MeasureV1, NowV1, ObstacleV1, PlansV1, PlanV1
from oomdoctor.report.wire.settings_v1 import planned_setting
from oomdoctor.report.wording.wording import Wording


def convert_plans(plans: Plans[Estimate], assumed: Sequence[Assumption], wording: Wording) -> PlansV1:
    """Convert the plans for a training run."""
    now = plans.now
    return PlansV1(
        schema="oomdoctor/plan/v1",
        model=clean_line(now.setup.shape.name, 400),
        gpus=now.setup.layout.cards,
        card=BudgetV1(name=clean_line(plans.budget.card, 200), bytes=plans.budget.total, usable_bytes=plans.budget.usable),
        fits=plans.fits,
        now=NowV1(per_gpu_bytes=size_range(now), host_bytes=now.host, peak=now.peak.name, terms=dict(now.terms)),
        plans=tuple(_plan(plan) for plan in plans.plans),
        wall=None if plans.obstacle is None else _obstacle(plans.obstacle),
        combinations=plans.combinations,
        assumptions=assumptions(assumed, wording),
        by_hand=tuple(_plan(plan) for plan in plans.by_hand),
        broken=tuple(broken_plan(each, _plan(each.plan), wording) for each in plans.broken),
    )


def broken_plan(broken: BrokenPlan[Outcome], plan: PlanV1, wording: Wording) -> BrokenPlanV1:
    """Convert a plan that the files of the run break."""
    key = None if broken.key is None else clean_line(broken.key, 200)
    return BrokenPlanV1(plan=plan, file=clean_line(broken.file, 400), key=key, why=clean_line(wording.say(broken.why), 400))


def measures(changes: Iterable[Measure]) -> tuple[MeasureV1, ...]:
    """Convert the measures of a plan."""
    return tuple(
        MeasureV1(
            fix=measure.fix,
            sets=dict(measure.sets),
            settings=tuple(planned_setting(setting) for setting in measure.settings),
        )
        for measure in changes
    )


def _plan(plan: Plan[Estimate]) -> PlanV1:
    estimate = plan.outcome
    return PlanV1(
        measures=measures(plan.measures),
        per_gpu_bytes=size_range(estimate),
        host_bytes=estimate.host,
        peak=estimate.peak.name,
        terms=dict(estimate.terms),
        time=UNSET if plan.time is None else round(plan.time, 3),
        risk=plan.risk,
        effort=plan.effort,
    )


def _obstacle(obstacle: Obstacle[Estimate]) -> ObstacleV1:
    return ObstacleV1(
        closest=_plan(obstacle.closest),
        term=obstacle.closest.outcome.largest_term.name,
        fits=obstacle.fits,
        card=obstacle.card,
        card_as_it_is=obstacle.card_now,
        gpus=obstacle.cards,
        on_gpus=None if obstacle.on_cards is None else _plan(obstacle.on_cards),
    )
