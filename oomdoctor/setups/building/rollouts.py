"""What training with generated answers has beside the trained model: a reference, and an engine that answers."""

from __future__ import annotations

from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import RolloutEngine
from oomdoctor.knowledge.tables.rollout_engines import engine_defaults

_HERE = "colocate"
_BY_WEIGHT = frozenset({"grpo", "rloo"})
"""Methods that have a reference model only where the distance to it counts: trl/trainer/grpo_trainer.py, rloo_trainer.py."""


def has_reference(settings: RunSettings, framework: str | None) -> bool:
    """Return whether a method that can compare with a reference model does."""
    if (settings.method or "").lower() not in _BY_WEIGHT:
        return True
    if settings.kl_weight is not None:
        return settings.kl_weight != 0
    defaults = engine_defaults(framework or "")
    return defaults is None or defaults.reference


def engine(settings: RunSettings, framework: str | None, *, answers: bool) -> RolloutEngine | None:
    """Return the engine that shares the cards; None where there is none. `answers`: the method generates while it trains."""
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
