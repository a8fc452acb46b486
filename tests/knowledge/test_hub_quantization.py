"""What a quantization_config says of the weights: the bytes of the packed matrices, and which modules stay in 16 bit."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.memory.model.parameters import linears
from oomdoctor.setups.weights_said import own_weights, weights_said

DENSE: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 4096, "vocab_size": 32000,
}  # fmt: skip
SPARSE: dict[str, Any] = {
    **DENSE, "model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "head_dim": 128,
}  # fmt: skip
ATTENTION = 1024 * (2 * 1024 + 2 * 256)
"""q and o of 8 heads, k and v of 2, 128 wide."""
EXPERTS = 3 * 1024 * 512 * 8
MLP = 3 * 1024 * 4096


def shape(said: dict[str, Any] | None, base: dict[str, Any] | None = None, **more: Any) -> Shape:
    found = shape_from_config({**(base or DENSE), **({"quantization_config": said} if said else {}), **more})
    assert found is not None
    return found


GROUP = {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}}


@pytest.mark.parametrize(("said", "name", "each"), [
    pytest.param({"quant_method": "fp8"}, "fp8", 1.0, id="FP8 with one scale a tensor"),
    pytest.param({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", 1 + 4 / 16384, id="FP8 with an fp32 scale for 128 x 128"),
    pytest.param({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq-int4", 0.5 + 2 / 128 + 0.5 / 128, id="AWQ: scale and zero for 128"),
    pytest.param({"quant_method": "awq", "bits": 4, "group_size": 64}, "awq-int4", 0.5 + 2 / 64 + 0.5 / 64, id="AWQ: scale and zero for 64"),
    pytest.param({"quant_method": "gptq", "bits": 8, "group_size": 32}, "gptq-int8", 1 + 2 / 32 + 1 / 32, id="GPTQ in 8 bit"),
    pytest.param({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"a": GROUP}}, "gptq-int4", 0.5 + 2 / 128, id="packed int4, symmetric"),
    pytest.param({"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}}}}, "nvfp4", 0.5625, id="NVFP4"),
    pytest.param({"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 32}}}}, "mxfp4", 0.53125, id="MXFP4 of compressed-tensors"),
    pytest.param({"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}}}, "w8a8", 1.0, id="int8 with a scale a row"),
    pytest.param({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 0.5625, id="modelopt NVFP4: an fp8 scale for 16"),
    pytest.param({"quant_algo": "FP8"}, "fp8", 1.0, id="modelopt FP8 without a method"),
    pytest.param({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4-dq", 0.5159, id="bitsandbytes, scales packed too"),
    pytest.param({"quant_method": "mxfp4"}, "mxfp4", 0.53125, id="MXFP4: an 8-bit scale for 32"),
])  # fmt: skip
def test_a_packed_parameter_has_the_bytes_of_its_bits_and_scales(said: dict[str, Any], name: str, each: float) -> None:
    found = own_weights(shape(said))
    assert found is not None
    assert found.name == name
    assert found.bytes_per_param == pytest.approx(each)
    assert found.kept_wide == 4 * 2 * 1024  # the norms


@pytest.mark.parametrize(("said", "packed"), [
    pytest.param({"quant_method": "fp8"}, 4 * (ATTENTION + EXPERTS), id="all matrices, routers never"),
    pytest.param({"quant_method": "fp8", "modules_to_not_convert": ["self_attn"]}, 4 * EXPERTS, id="a part of a name"),
    pytest.param({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}, 4 * EXPERTS, id="a star for the layer"),
    pytest.param({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["model.layers.0*", "model.language_model.layers.1.self_attn*"]}, 2 * ATTENTION + 3 * EXPERTS, id="whole layers and parts by number"),
    pytest.param({"quant_method": "compressed-tensors", "config_groups": {"a": GROUP}, "ignore": ["re:.*self_attn.*", "lm_head"]}, 4 * EXPERTS, id="a regular expression"),
    pytest.param({"quant_method": "compressed-tensors", "config_groups": {"a": GROUP}, "ignore": ["re:.*mlp.gate$"]}, 4 * (ATTENTION + EXPERTS), id="near miss: the router is not the experts"),
    pytest.param({"quant_method": "compressed-tensors", "config_groups": {"a": GROUP}, "ignore": ["re:(a+)+b(.*)*x"]}, 4 * (ATTENTION + EXPERTS), id="an expression that could take for ever is not used"),
    pytest.param({"quant_method": "compressed-tensors", "config_groups": {"a": {**GROUP, "targets": ["re:.*mlp.experts.*"]}}}, 4 * EXPERTS, id="targets that name the experts"),
])  # fmt: skip
def test_named_modules_stay_in_16_bit(said: dict[str, Any], packed: int) -> None:
    found, known = own_weights(shape(said, SPARSE)), shape(said, SPARSE)
    assert found is not None
    assert linears(known) + 4 * (1024 * 8 + 2 * 1024 + 2 * 128) == packed + (found.kept_wide or 0)


def test_each_group_of_a_mixed_checkpoint_has_its_own_bytes() -> None:
    said = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
        **{f"model.layers.{number}.self_attn.{name}_proj": {"quant_algo": "FP8"} for number in range(4) for name in "qkvo"},
        **{f"model.layers.{number}.mlp.{name}_proj": {"quant_algo": "NVFP4"} for number in range(4) for name in ("gate", "up", "down")},
    }}  # fmt: skip
    found = own_weights(shape(said))
    assert found is not None
    assert found.bytes_per_param == pytest.approx((ATTENTION + 0.5625 * MLP) / (ATTENTION + MLP))


@pytest.mark.parametrize(
    "said",
    [{}, {"quant_method": "a-new-one"}, {"quant_method": ["fp8"]}, {"quant_method": "compressed-tensors", "config_groups": {"a": 3}}],
)
def test_what_is_not_known_is_no_format(said: dict[str, Any]) -> None:
    assert own_weights(shape(said)) is None


@pytest.mark.parametrize(("named", "name"), [
    ("org/Some-8B-FP8", "fp8"), ("org/Some-8B-AWQ", "awq-int4"), ("org/Some-8B-Instruct-GPTQ-Int4", "gptq-int4"), ("org/Some-GPTQ-Int8", "gptq-int8"),
    ("org/Some-NVFP4", "nvfp4"), ("org/Some-quantized.w8a8", "w8a8"), ("org/Some-quantized.w4a16", "w4a16"), ("unsloth/Some-unsloth-bnb-4bit", "nf4"),
    ("org/Some-MXFP4", "mxfp4"), ("/models/some-8b-q4_k_m.gguf", "q4_k_m"), ("org/Some-8B-BF16", "bf16"), ("org/Some-8B", None),
])  # fmt: skip
def test_names_of_checkpoints_say_their_format(named: str, name: str | None) -> None:
    found = weights_said(shape(None), named)
    assert (found.name if found else None) == name


def test_a_name_that_means_other_bits_than_the_table_is_another_checkpoint() -> None:
    known = shape({"quant_method": "fp8", "weight_block_size": [128, 128]})
    assert [weights_said(known, name).name for name in ("org/Some-AWQ", "org/Some-FP8", "org/Some")] == ["awq-int4", "fp8", "fp8"]  # type: ignore[union-attr]


def test_nvfp4_of_a_model_with_latent_attention_leaves_the_attention_in_16_bit() -> None:
    sizes = {
        "kv_lora_rank": 64,
        "qk_rope_head_dim": 32,
        "qk_nope_head_dim": 64,
        "v_head_dim": 64,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
    }
    known = shape(None, {**DENSE, "model_type": "deepseek_v3", "moe_intermediate_size": 512, **sizes})
    found, plain = weights_said(known, "org/Some-NVFP4"), weights_said(known, "org/Some-FP8")
    assert found is not None
    assert plain is not None
    attention = 1024 * 8 * 96 + 1024 * 96 + 64 * 8 * 128 + 8 * 64 * 1024
    assert (found.kept_wide, plain.kept_wide) == (4 * (attention + 64 + 2 * 1024 + 8 * 1024 + 8), None)


DELTA = {
    "full_attention_interval": 4,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
}


@pytest.mark.parametrize(("config", "name", "attention"), [
    pytest.param({"model_type": "qwen3_next", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512, **DELTA}, "org/Some-NVFP4", 2.0,
                 id="with experts: what mixes tokens stays in 16 bit"),
    pytest.param({"model_type": "qwen3_5_text", **DELTA}, "org/Some-NVFP4", 1.0, id="without: in 8 bit"),
    pytest.param({"model_type": "qwen3_5_text", **DELTA}, "org/Some-AWQ", None, id="near miss: another format"),
    pytest.param({"model_type": "llama"}, "org/Some-NVFP4", None, id="near miss: attention alone is packed too"),
])  # fmt: skip
def test_nvfp4_leaves_linear_attention_wider(config: dict[str, Any], name: str, attention: float | None) -> None:
    found = weights_said(shape(None, {**DENSE, **config}), name)
    assert found is not None
    assert found.attention_bytes == attention


def test_widths_that_a_config_tells_apart_count_before_one_that_a_name_says() -> None:
    mixed = {
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {"*.self_attn.*": {"quant_algo": "FP8"}, "*.mlp.*": {"quant_algo": "NVFP4"}},
    }
    found = weights_said(shape(mixed, DENSE), "org/Some-NVFP4")
    assert found is not None
    assert found.attention_bytes == 1
    assert found.bytes_per_param > 0.5625
