"""Counts of parameters are exact: published counts, and the classes of transformers where they are installed."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import known
from msgspec.structs import replace

from oomdoctor.case.shape import Experts
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.knowledge.tables.models import model_rows
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.memory.model.parameters import active, embedding, final_norm, layer, linears, output, positions, text, total

UNCONFIRMED = {"zai-org/GLM-4-32B-0414": 41_000, "zai-org/GLM-Z1-32B-0414": 41_000, "zai-org/glm-4v-9b": 34_000}
"""Their configs are not confirmed; the difference to the published count, at most."""


def test_every_count_is_the_published_one() -> None:
    counts = {row.name: (total(known(row.name)), row.params_total_published) for row in model_rows() if row.params_total_published}
    assert {name: (own, told) for name, (own, told) in counts.items() if abs(own - told) > UNCONFIRMED.get(name, 0)} == {}


def test_the_table_states_what_is_counted() -> None:
    counts = {row.name: (total(known(row.name)), row.params_total_formula) for row in model_rows() if not row.parts}
    assert {name: (own, told) for name, (own, told) in counts.items() if own != told} == {}


def test_most_models_of_the_table_have_a_published_count() -> None:
    counted = [row for row in model_rows() if row.params_total_published]
    assert len(counted) > 110


def test_the_layers_of_a_count_are_all_layers_one_by_one() -> None:
    few = replace(known("Qwen/Qwen3-30B-A3B"), layers=2, experts=Experts(routed=8, active=2, intermediate=64, dense_layers=3))
    shapes = [model_shape(row.name) for row in model_rows() if not row.parts]
    for shape in (*filter(None, shapes), few):
        outside = shape.extra + embedding(shape) + output(shape) + positions(shape) + final_norm(shape)
        assert text(shape) == outside + sum(layer(shape, number) for number in range(shape.layers)), shape.name


def test_a_token_goes_through_a_tenth_of_a_sparse_model() -> None:
    moe = known("Qwen/Qwen3-30B-A3B")
    assert (text(moe), active(moe)) == (30_532_122_624, 3_353_032_704)


def test_matrices_are_the_most_of_a_model_but_not_all_of_it() -> None:
    small = known("google/gemma-2-2b")
    assert 0.7 < linears(small) / total(small) < 0.8


CONFIGS: list[Any] = [
    ("llama", {}), ("llama", {"num_key_value_heads": 8, "tie_word_embeddings": True}), ("mistral", {}), ("mixtral", {"num_hidden_layers": 2}),
    ("qwen2", {}), ("qwen3", {}), ("qwen2_moe", {"num_hidden_layers": 4}), ("qwen3_moe", {"num_hidden_layers": 4}), ("gemma", {}), ("gemma2", {}),
    ("gemma3_text", {}), ("phi", {}), ("phi3", {}), ("gpt2", {}), ("gpt_neox", {}), ("gptj", {}), ("opt", {}), ("bloom", {}), ("falcon", {}),
    ("starcoder2", {}), ("glm", {}), ("glm4", {}), ("deepseek_v2", {"num_hidden_layers": 3}), ("olmo2", {}), ("stablelm", {}), ("granite", {}),
    ("gpt_oss", {"num_hidden_layers": 2, "num_local_experts": 4}), ("qwen3_next", {"num_hidden_layers": 4, "num_experts": 4, "num_experts_per_tok": 2}),
    ("olmo3", {"num_hidden_layers": 4}), ("jamba", {"num_hidden_layers": 8}), ("cohere2", {"num_hidden_layers": 4}), ("smollm3", {}),
    ("mamba", {}), ("falcon_mamba", {}), ("mamba2", {}), ("bamba", {"attn_layer_indices": [9, 18, 27]}), ("arcee", {}), ("apertus", {}), ("jais2", {}),
    ("nemotron", {"num_key_value_heads": 8}), ("bitnet", {}),
]  # fmt: skip


@pytest.mark.parametrize(("family", "changes"), CONFIGS, ids=[f"{family} {sorted(changes)}" for family, changes in CONFIGS])
def test_the_count_is_that_of_the_class_in_transformers(family: str, changes: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.CONFIG_MAPPING[family](**changes)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    found = shape_from_config(config.to_dict(), family)
    assert found is not None
    assert total(found) == sum(parameter.numel() for parameter in model.parameters())
