"""The model's own code and the formulas count the same memory (skipped where torch, transformers or peft are missing)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from memory.runs import lora, run
from msgspec.structs import replace

from oomdoctor.case.setup import Setup
from oomdoctor.cli.main import cli
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.memory import activations, logits
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.model import parameters as count

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "vocab_size": 32000,
    "pad_token_id": None,
}


def config(family: str, **changes: Any) -> dict[str, Any]:
    """A config of a family as its file holds it."""
    made: dict[str, Any] = transformers.CONFIG_MAPPING[family](**{**SMALL, **changes}).to_dict()
    return made | {"model_type": family}


def setup_of(family: str, written: dict[str, Any], **changes: Any) -> Setup:
    shape = shape_from_config(written, family)
    assert shape is not None
    return replace(run(length=2048, **changes), shape=shape)


FAMILIES = [
    pytest.param("llama", {"num_key_value_heads": 4}, id="Llama with grouped queries"),
    pytest.param("qwen2", {"num_key_value_heads": 4, "tie_word_embeddings": True}, id="Qwen 2 with a tied head"),
    pytest.param("qwen3", {"num_key_value_heads": 8, "head_dim": 64}, id="Qwen 3 with norms of queries and keys"),
    pytest.param("glm4", {"num_key_value_heads": 2, "head_dim": 64}, id="GLM 4 with four norms"),
    pytest.param("gpt_neox", {}, id="GPT-NeoX with LayerNorm and a plain MLP"),
]
RUNS = [
    pytest.param({"checkpointing": "none"}, id="full training"),
    pytest.param({"checkpointing": "none", "batch": 4}, id="with a batch of four"),
    pytest.param({"checkpointing": "full"}, id="full training with checkpointing"),
]


@pytest.mark.parametrize("changes", RUNS)
@pytest.mark.parametrize(("family", "written"), FAMILIES)
def test_both_ways_agree(family: str, written: dict[str, Any], changes: dict[str, Any]) -> None:
    from oomdoctor.tracing.trace import trace

    made = config(family, **written)
    setup = setup_of(family, made, **changes)
    found = trace(made, setup)
    formula = activations.kept(setup).bytes + logits.loss(setup).bytes
    assert found.params == count.total(setup.shape)
    assert found.forward == pytest.approx(formula, rel=0.05)


@pytest.mark.parametrize(("family", "written"), FAMILIES[:3])
def test_both_ways_agree_on_adapters(family: str, written: dict[str, Any]) -> None:
    from oomdoctor.tracing.trace import trace

    made = config(family, **written)
    setup = setup_of(family, made, checkpointing="none", adapters=lora(16))
    found = trace(made, setup)
    formula = activations.kept(setup).bytes + logits.loss(setup).bytes
    assert found.forward == pytest.approx(formula, rel=0.05)
    assert found.trained == sum(16 * (into + out) * 12 for into, out in _matrices(made))


def _matrices(made: dict[str, Any]) -> list[tuple[int, int]]:
    h, i, kv = made["hidden_size"], made["intermediate_size"], made["num_key_value_heads"] * 64
    return [(h, h), (h, kv), (h, kv), (h, h), (h, i), (h, i), (i, h)]


def test_a_prompt_takes_what_the_formula_says() -> None:
    """Three tensors as wide as the MLP and four hidden states beside the cache of the prompt."""
    from oomdoctor.memory import inference
    from oomdoctor.tracing.trace import trace

    made = config("llama", num_key_value_heads=4)
    setup = setup_of("llama", made, task="infer")
    found = trace(made, setup)
    formula = inference.cache(setup, inference.prompted(setup) / setup.length).bytes + inference.prompt(setup).bytes
    assert found.forward == pytest.approx(formula, rel=0.03)


def test_the_depth_does_not_change_what_a_layer_takes() -> None:
    from oomdoctor.tracing.trace import trace

    found = [
        trace(made, setup_of("llama", made, checkpointing="none")) for made in (config("llama", num_hidden_layers=n) for n in (4, 8, 12))
    ]
    assert found[2].forward - found[1].forward == found[1].forward - found[0].forward > 0
    assert found[0].backward == found[1].backward


def test_a_pattern_of_layers_is_traced_by_rounds() -> None:
    from oomdoctor.tracing.build import config_of, steps

    pattern = ["sliding_attention"] * 3 + ["full_attention"]
    assert steps(config_of(config("gemma3_text", layer_types=pattern * 3))) == (4, 8)
    assert steps(config_of(config("llama"))) == (2, 3)


def test_logits_are_most_of_a_short_model() -> None:
    from oomdoctor.tracing.trace import trace

    made = config("llama", num_hidden_layers=2, num_key_value_heads=4)
    setup = setup_of("llama", made, checkpointing="full")
    assert trace(made, setup).forward > 0.7 * logits.loss(setup).bytes


@pytest.mark.parametrize(("written", "says"), [
    pytest.param({"model_type": "no-such-model"}, "no model class for model_type no-such-model", id="a class that there is not"),
    pytest.param({}, "no model class for model_type (missing)", id="no model_type"),
    pytest.param({"model_type": "llama", "num_attention_heads": 0}, "", id="a config that makes no sense"),
])  # fmt: skip
def test_what_cannot_be_traced_says_why(written: dict[str, Any], says: str) -> None:
    from oomdoctor.errors import Untraceable
    from oomdoctor.tracing.trace import trace

    with pytest.raises(Untraceable, match=says.replace("(", r"\(").replace(")", r"\)")):
        trace(written, run(length=64))


@pytest.mark.parametrize("family", [pytest.param("llama", id="with formulas"), pytest.param("mamba2", id="without any")])
def test_the_command_traces_a_folder(tmp_path: Path, family: str) -> None:
    changes = SMALL if family == "llama" else {"hidden_size": 256, "num_hidden_layers": 6, "num_heads": 8, "head_dim": 64, "state_size": 16}
    made = transformers.CONFIG_MAPPING[family](**changes).to_dict() | {"model_type": family}
    (tmp_path / "config.json").write_text(json.dumps(made, default=str))
    arguments = ["estimate", "--model", str(tmp_path), "--method", "full", "--batch", "1", "--length", "512", "--trace", "--format", "json"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    forward = next(phase for phase in found["phases"] if phase["name"] == "forward")
    assert any("fake tensors" in term["basis"] for term in forward["terms"])


def test_the_trace_takes_the_place_of_the_formulas() -> None:
    from oomdoctor.tracing.trace import trace

    made = config("llama", num_key_value_heads=4)
    setup = setup_of("llama", made, checkpointing="none")
    traced = estimate(replace(setup, traced=trace(made, setup)))
    counted = estimate(setup)
    assert traced.expected == pytest.approx(counted.expected, rel=0.05)
    assert "logits" not in traced.terms
