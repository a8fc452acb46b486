"""The models alongside the trained one in PPO: a critic, which is trained too, and a reward model, which is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import ScoringModel, Setup
from oomdoctor.memory import activations, optimizer
from oomdoctor.memory.model import weights
from oomdoctor.memory.term import term

_BASIS = "a model with one value per token instead of a vocabulary: trl/experimental/ppo/ppo_trainer.py, verl/workers/fsdp_workers.py"


def as_run(setup: Setup, model: ScoringModel) -> Setup:
    """Return such a model as a separate run: one figure per token replaces the output projection."""
    shape = replace(model.shape, tied=True)
    return replace(
        setup, shape=shape, weights=model.weights, adapters=None, reference=False, rollout=None, critic=None, reward=None, eval_batch=None
    )


def reward(setup: Setup) -> Term | None:
    """Return the weights of the reward model; None if there is none."""
    return None if setup.reward is None else _together("reward model", [weights.weights(as_run(setup, setup.reward))])


def lasting(setup: Setup) -> Term | None:
    """Return the part of the critic that remains while the trained model works; None if it is then on the host, or there is none."""
    return None if setup.critic is None or setup.critic.takes_turns else _states(setup, setup.critic)


def gradients(setup: Setup) -> Term | None:
    """Return the gradients of a critic that is trained in the same pass."""
    if setup.critic is None or not setup.critic.one_pass:
        return None
    return _together("critic gradients", [optimizer.gradients(as_run(setup, setup.critic))])


def kept(setup: Setup) -> Term | None:
    """Return the activations of a critic that is trained in the same pass."""
    if setup.critic is None or not setup.critic.one_pass:
        return None
    return _together("critic activations", _kept(as_run(setup, setup.critic)))


def own_pass(setup: Setup, critic: ScoringModel) -> Iterator[Term]:
    """Yield what a critic uses while it is trained before or after the model."""
    run = as_run(setup, critic)
    yield _states(setup, critic)
    yield _together("critic gradients", [optimizer.gradients(run)])
    yield _together("critic activations", [*_kept(run), activations.working_set(run)])


def _states(setup: Setup, critic: ScoringModel) -> Term:
    run = as_run(setup, critic)
    return _together("critic", [weights.weights(run), optimizer.states(run)])


def _kept(run: Setup) -> list[Term | None]:
    return [activations.kept(run), activations.tower(run)]


def _together(name: str, parts: Sequence[Term | None]) -> Term:
    known = [part for part in parts if part is not None]
    size = sum(part.bytes for part in known)
    return replace(
        term(name, size, _BASIS), low=min(size, sum(part.low for part in known)), high=max(size, sum(part.high for part in known))
    )
