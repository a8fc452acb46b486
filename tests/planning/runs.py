"""Runs and cards to plan for."""

from __future__ import annotations

from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.settings import RunSettings, Scalar
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.setups.from_settings import setup_from_settings


def a_run(model: str = "Qwen/Qwen2.5-7B", framework: str = "llamafactory", cards: int = 1, **settings: Scalar) -> Setup:
    """A run of a known model with these settings."""
    known = model_shape(model)
    assert known is not None
    return setup_from_settings(
        RunSettings(finetuning="lora", micro_batch=1, sequence_length=2048).with_values(settings), known, framework, cards
    )[0]


def anything(fix: str) -> bool:  # noqa: ARG001 - what a framework has is asked fix by fix
    """Have every fix."""
    return True


def a_card(name: str = "RTX 4090") -> MemoryBudget:
    """A card by its name."""
    card = card_named(name)
    assert card is not None
    return memory_budget(card)
