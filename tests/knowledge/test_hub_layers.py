"""Layers that differ: how many parameters each has and what it keeps of a token or a sequence, counted by hand from the sizes."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.memory.inference import cache_per_token, sequence_cache
from oomdoctor.memory.model.parameters import layer, routed

PLAIN: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128,
    "intermediate_size": 4096, "vocab_size": 32000,
}  # fmt: skip
KEPT = 2 * 2 * 128 * 2
"""Bytes of a token in a layer: keys and values of 2 heads, 128 wide, 16 bit."""


def shape(**config: Any) -> Shape:
    found = shape_from_config({**PLAIN, **config})
    assert found is not None
    return found


def kept(model: Shape, tokens: int) -> float:
    return sequence_cache(replace(run(task="infer"), shape=model), tokens)


DELTA = {"linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 64, "linear_value_head_dim": 64}
DELTA_STATE = 3 * (2 * 4 * 64 + 8 * 64) * 2 + 8 * 64 * 64 * 4
"""Three inputs of the convolution in 16 bit, and a matrix for each head in fp32."""
MAMBA = {"mamba_num_heads": 16, "mamba_head_dim": 64, "ssm_state_size": 32, "n_groups": 2, "conv_kernel": 4}
MAMBA_STATE = 3 * (1024 + 2 * 2 * 32) * 2 + 16 * 64 * 32 * 4
LATENT = {"kv_lora_rank": 64, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 64, "q_lora_rank": 128}


@pytest.mark.parametrize(("config", "bytes_kept"), [
    pytest.param({}, 4 * KEPT * 1000, id="full attention"),
    pytest.param({"sliding_window": 100}, 4 * KEPT * 100, id="a window in every layer"),
    pytest.param({"sliding_window": 100, "layer_types": ["sliding_attention", "full_attention"] * 2}, 2 * KEPT * 1100, id="a window in every second layer"),
    pytest.param({"sliding_window": 100, "model_type": "gemma3_text", "num_hidden_layers": 6}, 5 * KEPT * 100 + KEPT * 1000, id="Gemma 3: one full layer of six"),
    pytest.param({"sliding_window": 100, "use_sliding_window": False, "model_type": "qwen2"}, 4 * KEPT * 1000, id="near miss: a window that is off"),
    pytest.param({"model_type": "llama4_text", "attention_chunk_size": 200, "no_rope_layers": [1, 1, 1, 0]}, 3 * KEPT * 200 + KEPT * 1000, id="Llama 4: chunks"),
    pytest.param({"model_type": "qwen3_next", "full_attention_interval": 4, **DELTA}, KEPT * 1000 + 3 * DELTA_STATE, id="Qwen3-Next: three delta nets, one attention"),
    pytest.param({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*M", **MAMBA}, KEPT * 1000 + 2 * MAMBA_STATE, id="Nemotron-H: Mamba 2, an MLP, attention"),
    pytest.param({"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"] * 2, **MAMBA}, 2 * KEPT * 1000 + 2 * MAMBA_STATE, id="Granite 4"),
    pytest.param({"model_type": "lfm2", "layer_types": ["conv", "full_attention"] * 2}, 2 * KEPT * 1000 + 2 * 2 * 1024 * 2, id="LFM2: two inputs of a convolution"),
    pytest.param({"model_type": "deepseek_v3", **LATENT}, 4 * 96 * 2 * 1000, id="latent attention: the narrow middle and the rotary part"),
    pytest.param({"model_type": "deepseek_v32", "index_head_dim": 128, "index_n_heads": 4, **LATENT}, 4 * (96 * 2 + 132) * 1000, id="an indexer's keys: fp8 and a scale"),
    pytest.param({"model_type": "gemma4_text", "global_head_dim": 256, "num_kv_shared_layers": 1, "sliding_window": 100, "layer_types": ["sliding_attention", "full_attention"] * 2},
                 KEPT * 100 * 2 + 2 * KEPT * 1000, id="Gemma 4: wider heads in full layers, the last layer keeps nothing of its own"),
    pytest.param({"model_type": "nemotron-nas", "num_key_value_heads": None, "intermediate_size": None, "num_hidden_layers": 3, "block_configs": [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 3.0}}, {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.5}},
        {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}}]}, KEPT * 1000, id="layers that a search chose"),
])  # fmt: skip
def test_what_a_sequence_of_1000_tokens_keeps(config: dict[str, Any], bytes_kept: int) -> None:
    assert kept(shape(**config), 1000) == bytes_kept


ATTENTION = 1024 * 128 * (2 * 8 + 2 * 2)
EXPERT = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}


@pytest.mark.parametrize(("config", "number", "params"), [
    pytest.param({"model_type": "qwen3_next", "full_attention_interval": 4, **DELTA, **EXPERT, "shared_expert_intermediate_size": 512}, 0,
                 1024 * (2 * 256 + 2 * 512 + 2 * 8 + 512) + 4 * 1024 + 2 * 8 + 64 + 3 * 1024 * (4 * 256 + 512) + 1024 * 5 + 2 * 1024, id="a delta net with experts and a shared one"),
    pytest.param({"model_type": "qwen3_next", "full_attention_interval": 4, **DELTA}, 3, ATTENTION + 1024 * 1024 + 2 * 128 + 3 * 1024 * 4096 + 2048, id="attention with a gate: queries twice"),
    pytest.param({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*M", **MAMBA}, 1, 2 * 1024 * 4096 + 1024, id="a layer that is an MLP without a gate"),
    pytest.param({"model_type": "arcee"}, 0, ATTENTION + 2 * 1024 * 4096 + 2 * 1024, id="Arcee: an MLP without a gate"),
    pytest.param({"model_type": "falcon_mamba", "state_size": 16, "intermediate_size": 2048}, 0,
                 1024 * 4096 + 2048 * (64 + 2 * 16) + 64 * 2048 + 2048 * 1024 + 2048 * (5 + 18) + 1024, id="Falcon-Mamba: a state and no MLP"),
    pytest.param({"model_type": "gpt_oss", "num_local_experts": 4, "attention_bias": True}, 0,
                 ATTENTION + 128 * 12 + 1024 + 8 + 4 * (3 * 1024 * 4096 + 2 * 4096 + 1024 + 1 + 1024) + 2048, id="gpt-oss: biases of experts and router, sinks"),
    pytest.param({"model_type": "gemma4_text", "attention_k_eq_v": True, "global_head_dim": 256, "num_global_key_value_heads": 1, "layer_types": ["full_attention"] * 4}, 0,
                 1024 * 256 * (2 * 8 + 1) + 2 * 256 + 3 * 1024 * 4096 + 4 * 1024, id="Gemma 4: keys that are the values"),
])  # fmt: skip
def test_a_layer_has_the_parameters_of_its_parts(config: dict[str, Any], number: int, params: int) -> None:
    assert layer(shape(**config), number) == params


def test_layers_without_experts_are_found_wherever_they_stand() -> None:
    mixed = shape(model_type="llama4_text", num_local_experts=4, interleave_moe_layer_step=2, intermediate_size_mlp=8192)
    assert routed(mixed) == 2 * 4 * 3 * 1024 * 4096
    assert [layer(mixed, number) for number in (0, 2)] == [ATTENTION + 3 * 1024 * 8192 + 2048] * 2


def test_a_token_in_layers_alike_takes_what_it_always_took() -> None:
    assert cache_per_token(replace(run(task="infer"), shape=shape())) == 4 * KEPT


@pytest.mark.parametrize("config", [
    {"num_hidden_layers": 0}, {"num_hidden_layers": -3}, {"hidden_size": "4096"}, {"hidden_size": 10**12}, {"vocab_size": None}, {"num_attention_heads": 2.5},
    {"num_hidden_layers": True},
])  # fmt: skip
def test_a_size_that_is_missing_or_absurd_gives_no_shape(config: dict[str, Any]) -> None:
    assert shape_from_config({**PLAIN, **config}) is None


@pytest.mark.parametrize("config", [
    {"layer_types": ["sliding_attention"]}, {"layer_types": [1, 2, 3, 4]}, {"layer_types": "full"}, {"block_configs": ["?"] * 4}, {"compress_ratios": [4]},
    {"linear_attn_config": {"full_attn_layers": [1], "kda_layers": [2]}}, {"model_type": "qwen3_next", "full_attention_interval": 4},
])  # fmt: skip
def test_lists_that_do_not_fit_the_layers_leave_them_alike(config: dict[str, Any]) -> None:
    assert shape(**config).each == ()


@pytest.mark.parametrize("named", [
    pytest.param({"embed_dim": 64, "hidden_size": 1024}, id="Qwen2-VL: the width of the text stands beside"),
    pytest.param({"hidden_size": 64, "out_hidden_size": 1024}, id="Qwen2.5-VL"),
])  # fmt: skip
def test_a_tower_is_as_wide_as_its_own_layers(named: dict[str, int]) -> None:
    tower = shape(vision_config={"model_type": "qwen2_vl", "depth": 2, "num_heads": 4, "patch_size": 14, "mlp_ratio": 4, **named}).vision
    assert tower is not None
    assert tower.hidden == 64
    assert tower.params == pytest.approx(2 * 12 * 64**2 + 3 * 14**2 * 64 + 256 * (256 + 1024), rel=0.01)
