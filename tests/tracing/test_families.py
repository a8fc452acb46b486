"""What a layer of each family keeps: the formula against the model's own code (skipped where torch, transformers or peft are missing)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from memory.runs import lora, run
from msgspec.structs import replace

from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.memory import activations

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

DEEP = 400
"""So many layers that what is there once is nothing beside them; only a few of them are traced."""
SMALL = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": DEEP, "num_attention_heads": 16, "vocab_size": 512}
GROUPED = {"num_key_value_heads": 4, "head_dim": 64}
OLD = {"n_embd": 1024, "n_layer": DEEP, "n_head": 16, "n_inner": 2816}
SPARSE = GROUPED | {"num_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 704}
LATENT = {
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 704, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64,
}  # fmt: skip
FAMILIES = [
    pytest.param("llama", GROUPED, id="Llama"),
    pytest.param("qwen3", GROUPED, id="Qwen 3: norms of queries and keys"),
    pytest.param("gemma", GROUPED, id="Gemma: the scale of a norm in fp32"),
    pytest.param("gemma2", GROUPED, id="Gemma 2: four norms"),
    pytest.param("gemma3_text", GROUPED, id="Gemma 3: four norms and those of queries and keys"),
    pytest.param("glm", GROUPED, id="GLM: both halves of the MLP in one matrix"),
    pytest.param("glm4", GROUPED, id="GLM 4: four norms, scaled in 16 bit"),
    pytest.param("phi3", {"num_key_value_heads": 4}, id="Phi 3: queries, keys and values in one matrix"),
    pytest.param("phi", {}, id="Phi: GELU in Python, one norm"),
    pytest.param("gpt2", OLD, id="GPT-2: nothing rotated, dropout of what layers add"),
    pytest.param("gptj", OLD, id="GPT-J: no fused attention"),
    pytest.param("gpt_neox", {}, id="GPT-NeoX: LayerNorm"),
    pytest.param("opt", {"ffn_dim": 2816, "word_embed_proj_dim": 1024}, id="OPT: ReLU keeps its output alone"),
    pytest.param("bloom", {"n_layer": DEEP, "n_head": 16, "intermediate_size": 4096}, id="BLOOM: ALiBi"),
    pytest.param("falcon", {"multi_query": True, "alibi": False, "intermediate_size": 4096}, id="Falcon: one head of keys"),
    pytest.param("stablelm", {"num_key_value_heads": 4}, id="StableLM: LayerNorm and a gate"),
    pytest.param("starcoder2", {"num_key_value_heads": 4}, id="StarCoder 2: GELU in one kernel"),
    pytest.param("olmo2", {"num_key_value_heads": 4}, id="OLMo 2: norms behind attention and MLP"),
    pytest.param("mixtral", GROUPED, id="Mixtral"),
    pytest.param("qwen2_moe", SPARSE | {"shared_expert_intermediate_size": 1408}, id="Qwen 2 MoE: a gated shared expert"),
    pytest.param("qwen3_moe", SPARSE, id="Qwen 3 MoE"),
    pytest.param("deepseek_v2", LATENT | {"q_lora_rank": None}, id="DeepSeek V2: latent attention"),
    pytest.param("deepseek_v3", LATENT | {"q_lora_rank": 512}, id="DeepSeek V3: queries through a narrow middle too"),
]


def traced(family: str, written: dict[str, Any], **changes: Any) -> tuple[float, Setup]:
    """Bytes that a layer keeps in the trace, and the run."""
    from oomdoctor.tracing.trace import trace

    made = transformers.CONFIG_MAPPING[family](**(SMALL | written | {"pad_token_id": None})).to_dict() | {"model_type": family}
    shape = shape_from_config(made, family)
    assert shape is not None
    setup = replace(run(length=512, checkpointing="none", **changes), shape=shape)
    return trace(made, setup).forward / DEEP, setup


@pytest.mark.parametrize(("family", "written"), FAMILIES)
def test_full_training(family: str, written: dict[str, Any]) -> None:
    found, setup = traced(family, written)
    assert found == pytest.approx(activations.layer(setup), rel=0.03)


@pytest.mark.parametrize(("family", "written"), [one for one in FAMILIES if "deepseek" not in str(one.values[0])])
def test_adapters_of_attention(family: str, written: dict[str, Any]) -> None:
    found, setup = traced(family, written, adapters=lora(16, "q v"))
    assert found == pytest.approx(activations.layer(setup), rel=0.03)


@pytest.mark.parametrize(("family", "written"), [one for one in FAMILIES if one.values[0] in ("llama", "phi3", "phi", "gpt2", "glm4")])
def test_adapters_of_every_matrix(family: str, written: dict[str, Any]) -> None:
    found, setup = traced(family, written, adapters=lora(16))
    assert found == pytest.approx(activations.layer(setup), rel=0.03)


@pytest.mark.parametrize(("family", "written"), FAMILIES[:3])
def test_eager_attention(family: str, written: dict[str, Any]) -> None:
    found, setup = traced(family, written, eager_attention=True)
    assert found == pytest.approx(activations.layer(setup), rel=0.03)


@pytest.mark.parametrize("changes", [pytest.param({}, id="full training"), pytest.param({"adapters": lora(16)}, id="adapters")])
def test_a_checkpointed_layer_is_computed_again(changes: dict[str, Any]) -> None:
    from oomdoctor.tracing.trace import trace

    made = transformers.CONFIG_MAPPING["llama"](**(SMALL | GROUPED | {"num_hidden_layers": 3})).to_dict() | {"model_type": "llama"}
    shape = shape_from_config(made, "llama")
    assert shape is not None
    setup = replace(run(length=2048, **changes), shape=shape)
    again = activations.working_set(setup)
    assert again is not None
    assert trace(made, setup).backward == pytest.approx(again.bytes + activations.kept(setup).bytes, rel=0.08)


@pytest.mark.parametrize("task", ["train", "infer"])
@pytest.mark.parametrize("written", [
    pytest.param({"model_type": "t5"}, id="T5, which says nothing of its first token"),
    pytest.param({"model_type": "bart"}, id="BART"),
    pytest.param({"model_type": "mamba2", "hidden_size": 256, "num_heads": 8, "head_dim": 64}, id="Mamba 2"),
    pytest.param({"model_type": "llava"}, id="a tower before the text"),
])  # fmt: skip
def test_a_bare_config_is_enough(written: dict[str, Any], task: Any) -> None:
    from oomdoctor.tracing.trace import trace

    assert trace(json.loads(json.dumps(written)), run(length=64, task=task)).forward > 0


def test_counting_has_an_end() -> None:
    from oomdoctor.tracing.live import LiveTensors
    from oomdoctor.tracing.operations import TakesTooLong

    with pytest.raises(TakesTooLong), LiveTensors(-1.0):
        torch.ones(1)
