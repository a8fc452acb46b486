"""A config.json of the Hugging Face hub -> the shape of its model, also in the words of older remote code."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.shape import Experts, Latent, Shape
from oomdoctor.knowledge.hub_configs.encoders import encoder_shape, gives_scores
from oomdoctor.knowledge.hub_configs.feed_forward import STATES, first_dense
from oomdoctor.knowledge.hub_configs.layers import with_layers
from oomdoctor.knowledge.hub_configs.quantization import checkpoint
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, absurd_sizes, part_of, size, sizes, texts
from oomdoctor.knowledge.hub_configs.towers import towers

_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_WIDTH = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner")
_VOCAB = ("padded_vocab_size", "vocab_size")
"""ChatGLM and GLM-4-9B say the size of the table in the first of these."""
_LONGEST_NAME = 40
_UNSTRETCHED = ("default", "su", "longrope", "llama3", "mrope", "None")
"""Kinds of rotary positions whose longest context config.json already states: _get_and_verify_max_len of vllm/config/model.py."""
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
    "jais2",
    "nemotron",
}
_PLAIN_BIAS = _LAYER_NORM - {"stablelm", "stablelm_epoch", "nemotron", "falcon", "refinedweb", "refinedwebmodel"}
_PLAIN_MLP = _PLAIN_BIAS | {"falcon", "refinedweb", "refinedwebmodel", "arcee", "apertus", "nemotron"}
_TIED = {
    "gpt2",
    "opt",
    "bloom",
    "falcon",
    "refinedweb",
    "refinedwebmodel",
    "gemma",
    "gemma2",
    "gemma3_text",
    "gemma3",
    "gemma3n_text",
    "gemma3n",
    "gemma4_text",
    "gemma4",
    "cohere",
    "cohere2",
}
"""Families whose config says nothing of tied embeddings and whose class ties them."""
_QKV_BIAS = {"qwen", "qwen2", "qwen2_moe", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "gpt_oss"}
_SANDWICH = {"gemma2", "gemma3_text", "gemma3", "gemma3n_text", "gemma3n", "gemma4_text", "gemma4", "glm4"}
_QK_NORM = {"gemma3_text", "gemma3", "gemma3n_text", "gemma3n", "gemma4_text", "gemma4", "lfm2", "hunyuan_v1_dense", "apertus"}
"""Beside Qwen 3 and what came after it."""
_QK_NORM_FULL = {"olmo2", "olmo3", "minimax_m2"}
_FUSED = {"qwen", "chatglm", "baichuan", "phi3", "internlm2", "falcon", "gpt_neox", "bloom", "gpt2"}
_FUSED_GATE = {"chatglm", "phi3", "glm", "glm4"}
_WIDE_NORM = {"gemma", "gemma2", "gemma3_text", "gemma3", "olmo2", "olmo3"}
_NOT_ROTARY = {"gpt2", "gpt_bigcode", "opt", "bloom"}
_EAGER_ONLY = {"gptj", "bloom"}
_ACTIVATIONS = {"gpt2": "gelu_new", "gptj": "gelu_new", "phi": "gelu_new", "opt": "relu"}
"""The class's own, where the config does not say."""
_ACTIVATION = ("hidden_activation", "hidden_act", "activation_function")
_EXPERT_WIDTH = ("moe_intermediate_size", "shared_intermediate_size")
_CORRECTED = {"deepseek_v3", "glm4_moe", "kimi_k2", "minimax_m2"}
"""Families whose router has a bias for each expert."""
_DROPOUT = ("resid_pdrop", "residual_dropout", "hidden_dropout", "dropout")


def shape_from_config(config: HubConfig, name: str = "") -> Shape | None:
    """Return the shape that a config describes; None where a size that is needed is missing or no sensible number."""
    if (reads := encoder_shape(config, name or str(config.get("model_type")))) is not None:
        return reads
    outer = config
    config = part_of(outer, "text_config", "llm_config", "language_config", "thinker_config") or config
    config = part_of(config, "text_config") or config
    family = str(config.get("model_type") or outer.get("model_type") or "").lower()
    hidden, layers, vocab = (size(config, *names) for names in (_HIDDEN, _LAYERS, _VOCAB))
    layers = layers or len(texts(config, "layers_block_type")) or None
    # A model of states alone has no heads.
    heads = size(config, *_HEADS) or (1 if family in STATES else None)
    if hidden is None or layers is None or heads is None or vocab is None or absurd_sizes(config):
        return None
    width = size(config, *_WIDTH, *_EXPERT_WIDTH) or _other_width(config, hidden, family)
    if width is None:
        return None
    head = size(config, "head_dim", "kv_channels", "attention_head_dim") or hidden // heads
    shape = _plain(config, outer, family, (hidden, layers, heads, head, width, vocab), name)
    return with_layers(shape, config, family)


def unusable_sizes(config: HubConfig) -> tuple[str, ...]:
    """Return the sizes without which a config describes no model: the first name of each that is missing or no sensible number."""
    inner = part_of(config, "text_config", "llm_config", "language_config", "thinker_config") or config
    inner = part_of(inner, "text_config") or inner
    needed = (_HIDDEN, _LAYERS, _HEADS, _VOCAB, (*_WIDTH, *_EXPERT_WIDTH))
    usual = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size")
    missing = (next((key for key in names if key in inner), name) for name, names in zip(usual, needed) if size(inner, *names) is None)
    return tuple(dict.fromkeys((*missing, *absurd_sizes(inner))))


def _other_width(config: HubConfig, hidden: int, family: str) -> int | None:
    """Return the width of the MLP where no number says it: four times the hidden size, a list's first, or none at all."""
    listed = next(iter(sizes(config, "intermediate_size")), None)
    return listed or (4 * hidden if family in _PLAIN_MLP else hidden if family in STATES or "block_configs" in config else None)


def _plain(config: HubConfig, outer: HubConfig, family: str, of: tuple[int, int, int, int, int, int], name: str) -> Shape:
    """Return a shape whose layers are all alike, from its sizes: hidden, layers, heads, width of a head, of the MLP, and vocabulary."""
    hidden, layers, heads, head, width, vocab = of
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
        output_bias=family in _PLAIN_BIAS - {"gptj"} or family == "gpt_oss",
        mlp_bias=family in _PLAIN_BIAS or bool(config.get("mlp_bias")),
        head_bias=family in {"phi", "gptj"},
        fused_qkv=family in _FUSED,
        fused_gate=family in _FUSED_GATE,
        activation=_activation(config, family),
        qk_norm=family.startswith("qwen3") or family in _QK_NORM | _QK_NORM_FULL or bool(config.get("use_qk_norm")),
        qk_norm_full=family in _QK_NORM_FULL,
        sandwich_norm=family in _SANDWICH,
        post_norm=family in {"olmo2", "olmo3"},
        shared_norm=family in {"phi", "gptj", "cohere", "cohere2"}
        or (family.startswith(("falcon", "refinedweb")) and not config.get("new_decoder_architecture")),
        parallel=_is_parallel(config, family),
        wide_norm=family in _WIDE_NORM,
        rotary=family not in _NOT_ROTARY and not config.get("alibi"),
        eager_only=family in _EAGER_ONLY,
        residual_dropout=any(config.get(name) not in (None, 0) for name in _DROPOUT),
        positions=_positions(config, family),
        extra=_extra(config, family, hidden, layers),
        window=size(config, "sliding_window") if config.get("use_sliding_window", True) else None,
        experts=_experts(config, width, family, layers),
        latent=_latent(config),
        vision=towers(outer, hidden),
        scores=gives_scores(outer),
        longest=_longest(config),
        checkpoint=checkpoint(outer) or checkpoint(config),
    )


def _longest(config: HubConfig) -> int | None:
    """Return the tokens that positions reach, with what stretches them: _get_and_verify_max_len of vllm/config/model.py."""
    told = size(config, "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
    stretch = config.get("rope_scaling") or config.get("rope_parameters")
    if told is None or not isinstance(stretch, Mapping):
        return told
    kind, factor = str(stretch.get("rope_type") or stretch.get("type")), stretch.get("factor")
    if kind in _UNSTRETCHED or not isinstance(factor, (int, float)):
        return told
    original = stretch.get("original_max_position_embeddings") if kind == "yarn" else None
    return max(told, int((original if isinstance(original, int) else told) * factor))


def _extra(config: HubConfig, family: str, hidden: int, layers: int) -> int:
    """Return parameters outside of layers that no other field names."""
    if family == "bloom":
        return 2 * hidden
    if family == "bitnet":
        # A norm before each output projection (modeling_bitnet.py).
        return layers * (hidden + (size(config, "intermediate_size") or 0))
    if family == "apertus":
        # The two parameters of an activation (xIELU).
        return 2 * layers
    own, words = size(config, "hidden_size_per_layer_input"), size(config, "vocab_size_per_layer_input")
    if not own or not words or not family.startswith(("gemma3n", "gemma4")):
        return 0
    # A table of inputs for every layer, and what makes such inputs of the hidden states (modeling_gemma4.py).
    return words * own * layers + hidden * own * layers + own


def _kv_heads(config: HubConfig, heads: int, family: str) -> int:
    if family in ("falcon", "refinedwebmodel") and config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    if "multi_query_attention" in config and not config["multi_query_attention"]:
        return heads
    return size(config, "num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv") or heads


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
        return (size(config, "max_position_embeddings") or 0) + 2
    return (size(config, "n_positions", "n_ctx") or 0) if family == "gpt2" else 0


def _experts(config: HubConfig, width: int, family: str, layers: int) -> Experts | None:
    routed = size(config, "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
    if not routed:
        return None
    each = size(config, "moe_intermediate_size") or width
    shared_width = size(config, "shared_expert_intermediate_size") or 0
    return Experts(
        routed=routed,
        active=size(config, "num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_k") or 1,
        intermediate=each,
        shared=size(config, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts") or shared_width // each,
        shared_gate=shared_width > 0,
        dense_layers=first_dense(config, layers),
        correction_bias=family in _CORRECTED,
    )


def _latent(config: HubConfig) -> Latent | None:
    sizes = [size(config, name) for name in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")]
    if None in sizes:
        return None
    rank, nope, rope, value = (size or 0 for size in sizes)
    return Latent(q_rank=size(config, "q_lora_rank"), kv_rank=rank, nope=nope, rope=rope, value=value)
