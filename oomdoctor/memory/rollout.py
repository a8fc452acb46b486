"""The engine that answers prompts on the cards that train: vLLM or SGLang beside the trainer, awake or asleep."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model.weights import HALF
from oomdoctor.memory.term import term

_LOW, _HIGH = 0.9, 1.05
"""An engine fills its share with the cache: vllm/v1/worker/gpu_worker.py, determine_available_memory; limits of its cache make it less,
CUDA graphs come on top."""


def on_card(setup: Setup, total: int) -> Setup:
    """Return the setup with what the engine takes of a card of so many bytes; the same setup where there is no engine.

    Whatever its share is, it must hold weights of its own in 16 bit: with less it does not start.
    """
    engine = setup.rollout
    if engine is None:
        return setup
    held = HALF * count.total(setup.shape) / engine.tensor
    return replace(setup, rollout=replace(engine, bytes=round(max(engine.share * total, held))))


def engine(setup: Setup) -> Term | None:
    """Return what the engine takes while it answers; None where there is none, or no card is named."""
    if setup.rollout is None or not setup.rollout.bytes:
        return None
    return term("rollout engine", setup.rollout.bytes, "its share of the card: rules/tables/rollout_engines.csv", low=_LOW, high=_HIGH)


def beside_training(setup: Setup) -> Term | None:
    """Return what of it is there while the trainer works; an engine that sleeps gives its weights and its cache back."""
    return None if setup.rollout is None or setup.rollout.sleeps else engine(setup)
