"""Frameworks that shard over all cards, or compute part of the activations again, without being told."""

from __future__ import annotations

import pytest

from oomdoctor.case.settings import RunSettings
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.from_settings import setup_from_settings


@pytest.mark.parametrize(("framework", "settings", "cards", "engine"), [
    pytest.param("torchtitan", {}, 8, "fsdp2", id="torchtitan over all cards"),
    pytest.param("torchtune", {}, 2, "fsdp2", id="a distributed recipe of torchtune"),
    pytest.param("torchtitan", {"fsdp": False}, 8, "ddp", id="whole copies where the config says so"),
    pytest.param("torchtitan", {"sharded_copies": 2}, 8, "fsdp2", id="in copies of it too"),
    pytest.param("torchtitan", {}, 1, "none", id="not on one card"),
    pytest.param("transformers", {}, 8, "ddp", id="not the Trainer"),
])  # fmt: skip
def test_how_a_run_is_spread(framework: str, settings: dict[str, bool], cards: int, engine: str) -> None:
    shape = model_shape("Llama-3.1-8B")
    assert shape is not None
    setup, _ = setup_from_settings(RunSettings().with_values(settings), shape, framework, cards)
    assert setup.layout.engine == engine


@pytest.mark.parametrize(("settings", "kind", "every"), [
    pytest.param({"selective_checkpointing": "op"}, "selective", 1, id="chosen operations"),
    pytest.param({"selective_checkpointing": "2"}, "full", 2, id="every second layer, as a text"),
    pytest.param({"selective_checkpointing": 3}, "full", 3, id="every third"),
    pytest.param({"selective_checkpointing": 2, "gradient_checkpointing": False}, "full", 2, id="in place of the older switch"),
    pytest.param({"selective_checkpointing": "no", "gradient_checkpointing": False}, "none", 1, id="nothing"),
    pytest.param({"selective_checkpointing": "no", "gradient_checkpointing": True}, "full", 1, id="everything"),
])  # fmt: skip
def test_what_is_computed_again(settings: dict[str, str | int | bool], kind: str, every: int) -> None:
    shape = model_shape("Llama-3.1-8B")
    assert shape is not None
    setup, assumptions = setup_from_settings(RunSettings().with_values(settings), shape, "torchtune", 2)
    assert (setup.checkpointing, setup.checkpointed_every) == (kind, every)
    assert "gradient_checkpointing" not in {assumption.id for assumption in assumptions}
