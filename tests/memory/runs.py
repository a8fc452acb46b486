"""Runs that several tests describe: a known model, and what a test changes of them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from oomdoctor.case.serving import ServerProgram
from oomdoctor.case.setup import Adapters, Layout, Setup
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.server import SERVERS
from oomdoctor.knowledge.tables.memory import framework_traits, known_format, known_optimizer
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.server import server_program


def known(name: str) -> Shape:
    """A shape of the table."""
    shape = model_shape(name)
    assert shape is not None
    return shape


def lora(rank: int = 8, targets: str = "q k v o gate up down") -> Adapters:
    """Adapters on every matrix."""
    return Adapters(rank=rank, targets=frozenset(targets.split()))


def run(model: str = "Qwen/Qwen2.5-7B", **changes: Any) -> Setup:
    """Full training in bf16 on one card, as torch counts live tensors; with what a test changes."""
    made = Setup(
        shape=known(model),
        task="train",
        stack=framework_traits(changes.pop("framework", "transformers")),
        weights=known_format(changes.pop("weights", "bf16")),
        optimizer=known_optimizer(changes.pop("optimizer", "adamw")),
        counter="max_allocated",
    )
    return replace(made, **changes)


def zero(stage: int, cards: int) -> Layout:
    """DeepSpeed on so many cards."""
    return Layout(engine="deepspeed", cards=cards, stage=stage)


def a_program(name: str) -> ServerProgram:
    """A server of the rules."""
    record = load_pack().record(SERVERS, name)
    assert record is not None
    return server_program(record)
