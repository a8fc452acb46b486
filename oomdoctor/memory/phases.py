"""The moments of a run and what exists in each: a peak is the largest of them, never a sum of the largest parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Phase, Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory import activations, allocator, ggml, inference, loading, logits, optimizer, pictures, rollout, saving, scoring, traced
from oomdoctor.memory.model import trained, weights
from oomdoctor.memory.model.gathered_weights import working_copies


def phases(setup: Setup) -> tuple[Phase, ...]:
    """Return all phases of a run in the order in which they first occur, with what the counter adds to the live tensors."""
    if setup.ggml is not None:
        return ggml.phases(setup, setup.ggml)
    if setup.pictures is not None:
        return pictures.phases(setup, setup.pictures)
    every = tuple(_training(setup) if setup.task == "train" else _generating(setup))
    # A cache grows while tokens are generated, not while the prompt is read.
    busy = [phase for phase in every if allocator.is_busy(phase.terms) and (setup.task == "train" or phase.name == "generation")]
    busiest = max(busy, key=lambda phase: phase.bytes, default=None)
    busy_terms = [phase.terms for phase in busy]
    return tuple(_seen(setup, phase, busy_terms if phase is busiest else []) for phase in every)


def _training(setup: Setup) -> Iterator[Phase]:
    """Return the phases of the second step: the optimizer states exist from then on."""
    models = (weights.weights(setup), weights.reference(setup), scoring.reward(setup))
    lasts = (*models, scoring.lasting(setup), trained.adapters(setup), optimizer.states(setup))
    standing = (*lasts, rollout.beside_training(setup))
    gradients = optimizer.gradients(setup)
    before = gradients if setup.accumulation > 1 and not setup.optimizer.in_backward else None
    copies, buckets = working_copies(setup), optimizer.buckets(setup)
    lasting = buckets if optimizer.keeps_buckets(setup) else None
    ahead, back = _counted(setup) if setup.traced is None else traced.passes(setup, setup.traced)
    yield _phase("load", *models, loading.loading(setup))
    yield _phase("forward", *standing, before, copies, lasting, scoring.kept(setup), *ahead)
    yield _phase("backward", *standing, gradients, scoring.gradients(setup), copies, buckets, *back)
    yield _phase("step", *standing, gradients, scoring.gradients(setup), optimizer.step_temporary(setup))
    if setup.critic is not None and not setup.critic.one_pass:
        others = (*models, trained.adapters(setup), optimizer.states(setup))
        yield _phase("critic", *(() if setup.critic.takes_turns else others), *scoring.own_pass(setup, setup.critic))
    if setup.rollout is not None:
        yield _phase("rollout", *lasts, rollout.engine(setup))
    if setup.eval_batch:
        yield _evaluation(setup, standing)
    if (saved := saving.saving(setup)) is not None:
        yield _phase("save", *standing, saved)
    if (merged := saving.merging(setup)) is not None:
        yield _phase("merge", *standing, merged)


def _counted(setup: Setup) -> tuple[Sequence[Term | None], Sequence[Term | None]]:
    """Return what the formulas count at the end of the forward pass and in the backward pass.

    While the first layers of a checkpointed model are recomputed, half of the gradients exist on average.
    """
    kept = activations.kept(setup)
    still = kept if setup.checkpointing == "full" else None
    return (kept, activations.tower(setup), logits.loss(setup), logits.gathered(setup)), (still, activations.working_set(setup))


def _evaluation(setup: Setup, standing: tuple[Term | None, ...]) -> Phase:
    """Return one batch without gradients, in addition to everything that training keeps."""
    batch = replace(setup, batch=setup.eval_batch or 1)
    return _phase(
        "evaluation",
        *standing,
        inference.prompt(batch),
        logits.loss(replace(batch, fused_loss=False), graded=False),
        logits.kept_for_metrics(setup),
    )


def _generating(setup: Setup) -> Iterator[Phase]:
    standing, cache = (weights.weights(setup), working_copies(setup)), inference.cache(setup)
    prompt_cache = inference.cache(setup, inference.prompted(setup) / setup.length)
    read = (prompt_cache, inference.prompt(setup)) if setup.traced is None else traced.prompt(setup, setup.traced)
    yield _phase("load", weights.weights(setup), loading.loading(setup))
    yield _phase("prompt", *standing, *read)
    yield _phase("generation", *standing, cache)


def _phase(name: str, *terms: Term | None) -> Phase:
    return Phase(name=name, terms=tuple(term for term in terms if term is not None and term.high > 0))


def _seen(setup: Setup, phase: Phase, busy: Sequence[Sequence[Term]]) -> Phase:
    """Return the phase with what the driver counts, and the busiest one with what the allocator keeps from all of them."""
    more = (allocator.slack(setup, phase.terms, busy) if busy else None, allocator.outside(setup))
    return replace(phase, terms=phase.terms + tuple(term for term in more if term is not None))
