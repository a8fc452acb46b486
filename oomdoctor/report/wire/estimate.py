"""Convert an estimate to `oomdoctor/estimate/v1`."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET
from msgspec.structs import replace

from oomdoctor.api.results import RunEstimate
from oomdoctor.case.estimate import Assumption, Estimate, Phase, Term
from oomdoctor.case.plan import Fit, Otherwise
from oomdoctor.memory.model.placement import card_placement
from oomdoctor.report.memory.understood import understood
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.estimate_v1 import (
    AssumptionV1,
    BlockGroupV1,
    CardV1,
    EstimateV1,
    FailedRequestV1,
    OtherwiseV1,
    PhaseV1,
    RangeV1,
    RankV1,
    SimulatedPhaseV1,
    SimulatedV1,
    TermV1,
)
from oomdoctor.report.wording.wording import Wording
from oomdoctor.simulation.simulated_run import SimulatedPhase, SimulatedRun


def convert_estimate(estimate: Estimate, wording: Wording, fit: Fit | None = None) -> EstimateV1:
    """Convert the estimate of a run; `fit` holds it against the card that was named."""
    return EstimateV1(
        schema="oomdoctor/estimate/v1",
        model=estimate.setup.shape.name,
        gpus=estimate.setup.layout.cards,
        counter=estimate.setup.counter,
        per_gpu_bytes=size_range(estimate),
        host_bytes=estimate.host,
        host_loading_bytes=estimate.host_loading,
        host_saving_bytes=estimate.host_saving,
        card=None if fit is None else _card(fit),
        server=None,
        peak=estimate.peak.name,
        phases=phases(estimate.phases),
        ranks=tuple(_rank(rank) for rank in estimate.ranks),
        assumptions=assumptions(estimate.assumptions, wording),
    )


def convert_run(run: RunEstimate, estimate: Estimate, wording: Wording) -> EstimateV1:
    """Convert what somebody asked of a run: also what it needs, and what was assumed the other way."""
    return replace(
        convert_estimate(estimate, wording, run.fit),
        understood=understood(estimate.setup, wording),
        needed_bytes=UNSET if run.needed is None else size_range(run.needed),
        otherwise=tuple(_otherwise(other, wording) for other in run.otherwise),
        simulated=UNSET if run.simulation is None else _simulated(run.simulation.run),
    )


def size_range(estimate: Estimate) -> RangeV1:
    """Return the bytes of one card, with their range."""
    return RangeV1(expected=estimate.expected, low=estimate.low, high=estimate.high)


def terms(parts: Iterable[Term]) -> tuple[TermV1, ...]:
    """Convert the parts of the memory."""
    return tuple(TermV1(name=term.name, bytes=term.bytes, low=term.low, high=term.high, basis=term.basis) for term in parts)


def phases(estimated: Iterable[Phase]) -> tuple[PhaseV1, ...]:
    """Convert the phases of a run."""
    return tuple(PhaseV1(name=phase.name, bytes=phase.bytes, terms=terms(phase.terms)) for phase in estimated)


def assumptions(taken: Iterable[Assumption], wording: Wording) -> tuple[AssumptionV1, ...]:
    """Convert what was taken as given."""
    return tuple(AssumptionV1(id=assumption.id, text=wording.say(assumption.text), asked=assumption.is_question) for assumption in taken)


def _card(fit: Fit) -> CardV1:
    budget = fit.budget
    return CardV1(
        name=clean_line(budget.card, 200),
        bytes=budget.total,
        usable_bytes=budget.usable,
        needed_bytes=size_range(fit.needed),
        fits=fit.fits,
    )


def _otherwise(other: Otherwise, wording: Wording) -> OtherwiseV1:
    return OtherwiseV1(
        assumption=other.assumption,
        text=wording.say(other.text),
        sets=dict(other.sets),
        needed_bytes=size_range(other.needed),
        fits=other.fits,
        turns=other.turns,
        limit=other.is_limit,
    )


def _rank(estimate: Estimate) -> RankV1:
    share = card_placement(estimate.setup)
    return RankV1(
        first=share.first,
        last=share.last,
        layers=share.layers,
        embedding=share.embeds,
        head=share.scores,
        micro_batches=share.in_flight,
        per_gpu_bytes=size_range(estimate),
        peak=estimate.peak.name,
        terms=dict(estimate.terms),
    )


def _simulated(run: SimulatedRun) -> SimulatedV1:
    """Convert a simulated run."""
    failed = run.failed
    return SimulatedV1(
        requests=run.requests,
        allocated_bytes=run.allocated,
        reserved_bytes=run.reserved,
        unused_bytes=run.unused,
        flushes=run.flushes,
        phases=tuple(_simulated_phase(phase) for phase in run.phases),
        holders=tuple(BlockGroupV1(name=clean_line(each.name, 200), bytes=each.bytes, blocks=each.blocks) for each in run.holders),
        failed=None
        if failed is None
        else FailedRequestV1(
            phase=_simulated_phase(failed.phase),
            place=clean_line(failed.place, 200),
            requested_bytes=failed.size,
            allocated_bytes=failed.allocated,
            reserved_bytes=failed.reserved,
            free_bytes=failed.free,
            largest_free_block_bytes=failed.largest_free,
        ),
    )


def _simulated_phase(phase: SimulatedPhase) -> SimulatedPhaseV1:
    return SimulatedPhaseV1(name=phase.name, step=phase.step, allocated_bytes=phase.allocated, reserved_bytes=phase.reserved)
