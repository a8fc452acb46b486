"""What training with generated completions adds to the trained model: a reference, a critic, a reward model, a generation engine."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import FrameworkTraits, RolloutEngine, ScoringModel
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.knowledge.tables.memory import known_format, training_method
from oomdoctor.knowledge.tables.rollout_engines import engine_defaults
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.building import trained

_HERE = "colocate"
_BY_WEIGHT = frozenset({"grpo", "rloo"})
"""Methods that have a reference model only if the KL divergence from it counts: trl/trainer/grpo_trainer.py, rloo_trainer.py."""


def has_reference(settings: RunSettings, framework: str | None) -> bool:
    """Return whether a method that can use a reference model does."""
    method = (settings.method or "").lower()
    if training_method(method).critic and _scoring(framework)["critic"] == "where-colocated":
        return settings.colocated_models is True
    if method not in _BY_WEIGHT:
        return True
    if settings.kl_weight is not None:
        return settings.kl_weight != 0
    defaults = engine_defaults(framework or "")
    return defaults is None or defaults.reference


def critic(settings: RunSettings, framework: str | None, traits: FrameworkTraits, shape: Shape) -> ScoringModel | None:
    """Return the model that PPO trains alongside on the same GPUs; None if there is none."""
    place = _scoring(framework)["critic"]
    if not training_method(settings.method or "").critic or place == "head":
        return None
    if place == "where-colocated" and settings.colocated_models is not True:
        return None
    made = model_shape(settings.critic_model or settings.reward_model or "") or shape
    # It is fully trained, even alongside adapters on packed weights.
    whole = replace(settings, finetuning="full", weight_format=None, load_bits=None)
    weights = trained.weights(whole, traits, made, None)
    return ScoringModel(shape=made, weights=weights, takes_turns=place == "turns", one_pass=place == "one-pass")


def reward(settings: RunSettings, framework: str | None, shape: Shape) -> ScoringModel | None:
    """Return the model that scores completions on the same GPUs; None if there is none."""
    if not training_method(settings.method or "").critic:
        return None
    place, told = _scoring(framework)["reward"], settings.reward_model is not None
    there = {"yes": True, "no": False, "where-told": told, "where-colocated": settings.colocated_models is True}[place]
    return ScoringModel(shape=model_shape(settings.reward_model or "") or shape, weights=known_format("bf16")) if there else None


def _scoring(framework: str | None) -> Row:
    """Return what a program does with critic and reward model; for an unknown one, what most do."""
    rows = {row["framework"]: row for row in table("scoring_models")}
    return rows.get(framework or "", rows["unknown"])


def engine(settings: RunSettings, framework: str | None, *, answers: bool) -> RolloutEngine | None:
    """Return the engine that shares the GPUs; None if there is none. `answers`: the method generates during training."""
    defaults = engine_defaults(framework or "")
    if not answers or defaults is None:
        return None
    if settings.rollout_engine != _HERE and not (defaults.always and settings.rollout_engine is None):
        return None
    share = settings.memory_share
    sleeps = settings.rollout_sleeps
    return RolloutEngine(
        share=share if share is not None and 0 < share <= 1 else defaults.share,
        sleeps=defaults.sleeps if sleeps is None else sleeps,
        tensor=positive(settings.rollout_tensor) or 1,
    )
