"""How much memory a fix frees on each GPU, and how much was missing: this decides whether it can be enough."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.advice.settings import WORLD, first_number
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.records.fix import FreesRecord

_PARAMETERS = ("training.parameters", "log.all_params")
_TRAINABLE = ("training.trainable_parameters", "log.trainable_params")
_STAGES = ("training.zero_stage", "log.zero_stage")
_GRADIENTS_SHARED = 2
"""The ZeRO stage from which gradients and optimizer state are sharded across GPUs (ZeRO paper)."""


def freed(frees: FreesRecord, facts: Mapping[str, Fact]) -> int | None:
    """Return the maximum bytes that a fix frees on each GPU, as far as a fact or the number of parameters gives them."""
    if frees.fact:
        size = first_number(facts, (frees.fact,))
        return None if size is None else int(size)
    model, trained = first_number(facts, _PARAMETERS), first_number(facts, _TRAINABLE)
    stage, cards = first_number(facts, _STAGES) or 0, first_number(facts, WORLD)
    per_trainable = 0 if frees.shared and stage >= _GRADIENTS_SHARED else frees.per_trainable
    if (frees.per_parameter and model is None) or (per_trainable and trained is None):
        return None
    total = frees.per_parameter * (model or 0) + per_trainable * (trained or 0)
    divided = frees.sharded_from is not None and stage >= frees.sharded_from
    if not total or ((frees.shared or divided) and not cards):
        return None
    share = 1 - 1 / cards if frees.shared and cards else 1 / cards if divided and cards else 1
    return int(total * share)


def missing(facts: Mapping[str, Fact]) -> float | None:
    """Return the shortfall in bytes of the failed request."""
    requested, free = first_number(facts, ("event.requested_bytes",)), first_number(facts, ("event.free_bytes",))
    return None if requested is None else max(0.0, requested - free) if free is not None else requested
