"""Convert what a server makes of a card to `oomdoctor/estimate/v1`, and the plans for it to `oomdoctor/plan/v1`."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.plan import Obstacle, Plan, Plans
from oomdoctor.case.serving import ByteRange, Served
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.estimate import assumptions, phases, terms
from oomdoctor.report.wire.estimate_v1 import BoundsV1, CardV1, EstimateV1, RangeV1, ServerV1, StartupCheckV1
from oomdoctor.report.wire.plan import broken_plan, measures
from oomdoctor.report.wire.plan_v1 import BudgetV1, NowV1, ObstacleV1, PlansV1, PlanV1
from oomdoctor.report.wording.wording import Wording


def convert_served(served: Served, wording: Wording) -> EstimateV1:
    """Convert the estimate of a served run."""
    filled = served.phases[-1]
    return EstimateV1(
        schema="oomdoctor/estimate/v1",
        model=clean_line(served.setup.shape.name, 400),
        gpus=served.setup.layout.cards,
        counter="nvidia-smi",
        per_gpu_bytes=RangeV1(
            expected=filled.bytes,
            low=sum(term.low for term in filled.terms),
            high=sum(term.high for term in filled.terms),
        ),
        host_bytes=served.server.offload * served.setup.layout.cards,
        card=CardV1(name=clean_line(served.card, 200), bytes=served.total, fits=served.starts),
        server=_server(served),
        peak=max(served.phases, key=lambda phase: phase.bytes).name,
        phases=phases(served.phases),
        assumptions=assumptions(served.assumptions, wording),
    )


def convert_served_plans(plans: Plans[Served], assumed: Sequence[Assumption], wording: Wording) -> PlansV1:
    """Convert the plans for a server; `server` is what a plan makes of the card."""
    now = plans.now
    return PlansV1(
        schema="oomdoctor/plan/v1",
        model=clean_line(now.setup.shape.name, 400),
        gpus=now.setup.layout.cards,
        card=BudgetV1(name=clean_line(plans.budget.card, 200), bytes=now.total, usable_bytes=now.taken),
        fits=now.starts,
        now=NowV1(server=_server(now)),
        plans=tuple(_plan(plan) for plan in plans.plans),
        wall=None if plans.obstacle is None else _obstacle(plans.obstacle),
        combinations=plans.combinations,
        assumptions=assumptions(assumed, wording),
        by_hand=tuple(_plan(plan) for plan in plans.by_hand),
        broken=tuple(broken_plan(each, _plan(each.plan), wording) for each in plans.broken),
    )


def _plan(plan: Plan[Served]) -> PlanV1:
    return PlanV1(measures=measures(plan.measures), server=_server(plan.outcome), risk=plan.risk, effort=plan.effort)


def _obstacle(obstacle: Obstacle[Served]) -> ObstacleV1:
    return ObstacleV1(closest=_plan(obstacle.closest), card=obstacle.card, gpus=obstacle.cards)


def _server(served: Served) -> ServerV1:
    failed = served.failed_check
    return ServerV1(
        program=served.server.program.name,
        share=served.server.memory_fraction,
        max_model_len=served.server.length,
        max_num_seqs=served.server.requests,
        max_batched_tokens=served.server.batched,
        taken_bytes=served.taken,
        terms=terms(served.terms),
        beside=terms(served.beside),
        cache_bytes=served.cache.expected,
        cache_range=_bounds(served.cache),
        cache_tokens=served.tokens.expected,
        token_range=_bounds(served.tokens),
        request_bytes=served.request,
        starts=served.starts,
        obstacle=None if failed is None else failed.name,
        hurdles=tuple(
            StartupCheckV1(name=check.name, cleared=check.passes, spare_bytes=check.spare.expected, range=_bounds(check.spare))
            for check in served.checks
        ),
    )


def _bounds(size: ByteRange) -> BoundsV1:
    return BoundsV1(low=size.low, high=size.high)
