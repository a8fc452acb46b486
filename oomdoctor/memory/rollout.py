"""The generation engine on the training GPUs: vLLM or SGLang next to the trainer, awake or asleep."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model.weights import HALF
from oomdoctor.memory.term import term

_LOW, _HIGH = 0.9, 1.05
"""An engine fills its share with the cache: vllm/v1/worker/gpu_worker.py, determine_available_memory; limits on its cache reduce it, CUDA
graphs come on top."""


def on_card(setup: Setup, total: int) -> Setup:
    """Return the setup with what the engine uses on a GPU of this many bytes; the same setup if there is no engine.

    Whatever its share is, it must hold its own weights in 16 bit: with less it does not start.
    """
    engine = setup.rollout
    if engine is None:
        return setup
    held = HALF * count.total(setup.shape) / engine.tensor
    return replace(setup, rollout=replace(engine, bytes=round(max(engine.share * total, held))))


def engine(setup: Setup) -> Term | None:
    """Return what the engine uses while it generates; None if there is none, or no GPU is named."""
    if setup.rollout is None or not setup.rollout.bytes:
        return None
    return term("rollout engine", setup.rollout.bytes, "its share of the card: rules/tables/rollout_engines.csv", low=_LOW, high=_HIGH)


def beside_training(setup: Setup) -> Term | None:
    """Return the part of it that remains while the trainer works; a sleeping engine releases its weights and its cache."""
    return None if setup.rollout is None or setup.rollout.sleeps else engine(setup)
