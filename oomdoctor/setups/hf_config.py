"""A config.json of the Hugging Face hub -> the shape of its model, also in the words of older remote code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomdoctor.case.shape import Experts, Latent, Shape, Vision

HubConfig = Mapping[str, Any]
"""A config.json as it was read."""
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_WIDTH = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner")
_VOCAB = ("padded_vocab_size", "vocab_size")
"""ChatGLM and GLM-4-9B say the size of the table in the first of these."""
_MOST = 10**7
"""No size of a model's config is larger; a number beyond it is no config."""
_LONGEST_NAME = 40
_LAYER_NORM = {
    "opt",
    "gpt2",
    "gpt_neox",
    "gptj",
    "bloom",
    "falcon",
    "refinedweb",
    "refinedwebmodel",
    "phi",
    "starcoder2",
    "gpt_bigcode",
    "stablelm",
    "stablelm_epoch",
}
_PLAIN_MLP = _LAYER_NORM - {"stablelm", "stablelm_epoch"}
_PLAIN_BIAS = _PLAIN_MLP - {"falcon", "refinedweb", "refinedwebmodel"}
_TIED = {"gpt2", "opt", "bloom", "falcon", "refinedweb", "refinedwebmodel", "gemma", "gemma2", "gemma3_text", "gemma3"}
"""Families whose config says nothing of tied embeddings and whose class ties them."""
_QKV_BIAS = {"qwen", "qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl"}
_SANDWICH = {"gemma2", "gemma3_text", "gemma3", "glm4"}
_QK_NORM = {"qwen3", "qwen3_moe", "gemma3_text", "gemma3"}
_FUSED = {"qwen", "chatglm", "baichuan", "phi3", "internlm2", "falcon", "gpt_neox", "bloom", "gpt2"}
_FUSED_GATE = {"chatglm", "phi3", "glm", "glm4"}
_WIDE_NORM = {"gemma", "gemma2", "gemma3_text", "gemma3", "olmo2"}
_NOT_ROTARY = {"gpt2", "gpt_bigcode", "opt", "bloom"}
_EAGER_ONLY = {"gptj", "bloom"}
_ACTIVATIONS = {"gpt2": "gelu_new", "gptj": "gelu_new", "phi": "gelu_new", "opt": "relu"}
"""The class's own, where the config does not say."""
_ACTIVATION = ("hidden_activation", "hidden_act", "activation_function")
_DROPOUT = ("resid_pdrop", "residual_dropout", "hidden_dropout", "dropout")


def shape_from_config(config: HubConfig, name: str = "") -> Shape | None:
    """Return the shape that a config describes; None where a size that is needed is missing or no sensible number."""
    outer = config
    nested = config.get("text_config") or config.get("llm_config") or config.get("language_config")
    config = nested if isinstance(nested, Mapping) else config
    family = str(config.get("model_type") or outer.get("model_type") or "").lower()
    hidden, layers, heads, vocab = (_size(config, *names) for names in (_HIDDEN, _LAYERS, _HEADS, _VOCAB))
    if hidden is None or layers is None or heads is None or vocab is None:
        return None
    width = _size(config, *_WIDTH) or (None if family not in _PLAIN_MLP else 4 * hidden)
    if width is None:
        return None
    head = _size(config, "head_dim", "kv_channels") or hidden // heads
    return Shape(
        name=name or str(outer.get("_name_or_path") or family),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=_kv_heads(config, heads, family),
        head=head,
        # Qwen 1 writes the width of both halves together (modeling_qwen.py: ff_dim_in = intermediate_size // 2).
        intermediate=width // 2 if family == "qwen" else width,
        vocab=vocab,
        tied=bool(config.get("tie_word_embeddings", outer.get("tie_word_embeddings", family in _TIED))),
        gated=family not in _PLAIN_MLP,
        rms=family not in _LAYER_NORM,
        attention_bias=bool(
            config.get("attention_bias", config.get("add_qkv_bias", family in _QKV_BIAS or family in _PLAIN_BIAS - {"gptj"}))
        ),
        output_bias=family in _PLAIN_BIAS - {"gptj"},
        mlp_bias=family in _PLAIN_BIAS or bool(config.get("mlp_bias")),
        head_bias=family in {"phi", "gptj"},
        fused_qkv=family in _FUSED,
        fused_gate=family in _FUSED_GATE,
        activation=_activation(config, family),
        qk_norm=family in _QK_NORM or bool(config.get("use_qk_norm")) or family == "olmo2",
        qk_norm_full=family == "olmo2",
        sandwich_norm=family in _SANDWICH,
        post_norm=family == "olmo2",
        shared_norm=family in {"phi", "gptj"}
        or (family.startswith(("falcon", "refinedweb")) and not config.get("new_decoder_architecture")),
        parallel=_is_parallel(config, family),
        wide_norm=family in _WIDE_NORM,
        rotary=family not in _NOT_ROTARY and not config.get("alibi"),
        eager_only=family in _EAGER_ONLY,
        residual_dropout=any(config.get(name) not in (None, 0) for name in _DROPOUT),
        positions=_positions(config, family),
        extra=2 * hidden if family == "bloom" else 0,
        window=_size(config, "sliding_window") if config.get("use_sliding_window", True) else None,
        experts=_experts(config, width, family),
        latent=_latent(config),
        vision=_vision(outer, hidden),
    )


def _kv_heads(config: HubConfig, heads: int, family: str) -> int:
    if family in ("falcon", "refinedwebmodel") and config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    if "multi_query_attention" in config and not config["multi_query_attention"]:
        return heads
    return _size(config, "num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv") or heads


def _is_parallel(config: HubConfig, family: str) -> bool:
    if family.startswith(("falcon", "refinedweb")):
        return bool(config.get("new_decoder_architecture") or config.get("parallel_attn", True))
    return family in {"phi", "gptj"} or (family == "gpt_neox" and bool(config.get("use_parallel_residual", True)))


def _activation(config: HubConfig, family: str) -> str:
    stated = next((value for name in _ACTIVATION if isinstance(value := config.get(name), str)), None)
    return (stated or _ACTIVATIONS.get(family, ""))[:_LONGEST_NAME].lower()


def _positions(config: HubConfig, family: str) -> int:
    if family == "opt":
        # The first two rows are for padding (modeling_opt.py, OPTLearnedPositionalEmbedding).
        return (_size(config, "max_position_embeddings") or 0) + 2
    return (_size(config, "n_positions", "n_ctx") or 0) if family == "gpt2" else 0


def _experts(config: HubConfig, width: int, family: str) -> Experts | None:
    routed = _size(config, "num_local_experts", "n_routed_experts", "num_experts")
    if not routed:
        return None
    each = _size(config, "moe_intermediate_size") or width
    shared_width = _size(config, "shared_expert_intermediate_size") or 0
    return Experts(
        routed=routed,
        active=_size(config, "num_experts_per_tok", "num_experts_per_token") or 1,
        intermediate=each,
        shared=_size(config, "n_shared_experts") or shared_width // each,
        shared_gate=shared_width > 0,
        dense_layers=_size(config, "first_k_dense_replace") or 0,
        correction_bias=family in {"deepseek_v3", "glm4_moe"},
    )


def _latent(config: HubConfig) -> Latent | None:
    sizes = [_size(config, name) for name in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")]
    if None in sizes:
        return None
    rank, nope, rope, value = (size or 0 for size in sizes)
    return Latent(q_rank=_size(config, "q_lora_rank"), kv_rank=rank, nope=nope, rope=rope, value=value)


def _vision(outer: HubConfig, text_hidden: int) -> Vision | None:
    """Return a tower by its layers, its patches and one projection into the text; exact to a few per cent of the tower."""
    config = outer.get("vision_config")
    if not isinstance(config, Mapping):
        return None
    hidden = _size(config, "hidden_size", "embed_dim", "width")
    layers = _size(config, "num_hidden_layers", "depth", "layers", "num_layers")
    if not hidden or not layers:
        return None
    wide = _size(config, "intermediate_size") or hidden * int(config.get("mlp_ratio") or 4)
    gated = str(config.get("model_type", "")).startswith("qwen2_5")
    patch, image = _size(config, "patch_size") or 14, _size(config, "image_size") or 0
    patches = (image // patch) ** 2 if image else 0
    each = 4 * hidden * (hidden + 1) + (3 if gated else 2) * hidden * wide + wide + 5 * hidden
    params = layers * each + 3 * patch * patch * hidden + patches * hidden + hidden * text_hidden
    return Vision(
        params=params,
        hidden=hidden,
        layers=layers,
        heads=_size(config, "num_attention_heads", "num_heads") or 0,
        intermediate=wide,
        gated=gated,
        patches=patches,
    )


def _size(config: HubConfig, *names: str) -> int | None:
    """Return the first of these that is a positive whole number of a sensible size."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST:
            return value
    return None
