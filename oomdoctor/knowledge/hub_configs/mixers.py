"""What mixes the tokens of one layer, part by part: attention of all kinds, linear attention, state space models, convolutions.

Names and sizes are those of the model classes in transformers 5.23; the state is what vLLM keeps of a sequence
(vllm/model_executor/layers/mamba/mamba_utils.py).
"""

from __future__ import annotations

from oomdoctor.case.shape import ModelLayer, Part
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, part_of, size

_HALF = 2
_FP32 = 4
_INDEX_SCALE = 4
"""An fp32 scale beside each fp8 key of an indexer (vllm/v1/attention/backends/mla/indexer.py)."""


def attention(config: HubConfig, *, heads: int, kv_heads: int, head: int, value: int, window: int | None, **kind: bool) -> ModelLayer:
    """Return ordinary attention; `kind`: `biased`, `biased_output`, `normed`, `sunk`, `gated` and `shares_kv` say what it has beside."""
    hidden = size(config, "hidden_size") or 0
    query, key, kept = heads * head, kv_heads * head, kv_heads * value
    parts = [Part("self_attn.q_proj", hidden * query * (2 if kind.get("gated") else 1)), Part("self_attn.o_proj", heads * value * hidden)]
    if not kind.get("borrows_kv"):
        parts.append(Part("self_attn.k_proj", hidden * key))
        parts += [] if kind.get("shares_kv") else [Part("self_attn.v_proj", hidden * kept)]
    rest = (query + key + kept) * bool(kind.get("biased")) + hidden * bool(kind.get("biased_output"))
    rest += 2 * head * bool(kind.get("normed")) + heads * bool(kind.get("sunk"))
    cache = 0 if kind.get("borrows_kv") else key + kept
    return ModelLayer(parts=(*parts, Part("self_attn", rest, is_matrix=False)), cache=cache, window=window)


def latent(config: HubConfig, heads: int, *, shares_index: bool = False) -> ModelLayer | None:
    """Return multi-head latent attention, with an indexer where the config has one and the layer does not use another's choice.

    None where a size is missing.
    """
    hidden, rank, rope = (size(config, name) for name in ("hidden_size", "kv_lora_rank", "qk_rope_head_dim"))
    nope, value, narrow = (size(config, name) for name in ("qk_nope_head_dim", "v_head_dim", "q_lora_rank"))
    if not hidden or not rank or not rope or not nope or not value:
        return None
    query = heads * (nope + rope)
    queries = (
        [Part("self_attn.q_a_proj", hidden * narrow), Part("self_attn.q_b_proj", narrow * query)]
        if narrow
        else [Part("self_attn.q_proj", hidden * query)]
    )
    if config.get("mla_use_output_gate") is True:
        queries.append(Part("self_attn.g_proj", hidden * heads * value))
    parts = (
        *queries,
        Part("self_attn.kv_a_proj_with_mqa", hidden * (rank + rope)),
        Part("self_attn.kv_b_proj", rank * heads * (nope + value)),
        Part("self_attn.o_proj", heads * value * hidden),
        Part("self_attn.kv_a_layernorm", rank + (narrow or 0), is_matrix=False),
    )
    index = size(config, "index_head_dim")
    if not index or not narrow or shares_index:
        return ModelLayer(parts=parts, cache=rank + rope)
    many = size(config, "index_n_heads") or 1
    indexer = (
        Part("self_attn.indexer.wq_b", narrow * many * index),
        Part("self_attn.indexer.wk", hidden * index),
        Part("self_attn.indexer.weights_proj", hidden * many, is_matrix=False),
        Part("self_attn.indexer.k_norm", 2 * index, is_matrix=False),
    )
    return ModelLayer(parts=(*parts, *indexer), cache=rank + rope, indexed=index + _INDEX_SCALE)


def delta_net(config: HubConfig) -> ModelLayer | None:
    """Return a gated delta net (Qwen3-Next, Qwen3.5)."""
    keys, values = size(config, "linear_num_key_heads"), size(config, "linear_num_value_heads")
    key, value = size(config, "linear_key_head_dim"), size(config, "linear_value_head_dim")
    hidden, kernel = size(config, "hidden_size"), size(config, "linear_conv_kernel_dim") or 4
    if not keys or not values or not key or not value or not hidden:
        return None
    mixed, wide = 2 * keys * key + values * value, values * value
    parts = (
        Part("linear_attn.in_proj_qkv", hidden * mixed),
        Part("linear_attn.in_proj_z", hidden * wide),
        Part("linear_attn.in_proj_ba", hidden * 2 * values),
        Part("linear_attn.out_proj", wide * hidden),
        Part("linear_attn.conv1d", mixed * kernel + 2 * values + value, is_matrix=False),
    )
    return ModelLayer(parts=parts, state=(kernel - 1) * mixed * _HALF + values * key * value * _state_bytes(config))


def kimi_delta(config: HubConfig) -> ModelLayer | None:
    """Return Kimi's delta attention, whose sizes stand in a block of their own."""
    own = part_of(config, "linear_attn_config")
    heads, head, hidden = size(own, "num_heads"), size(own, "head_dim"), size(config, "hidden_size")
    if not heads or not head or not hidden:
        return None
    wide, kernel = heads * head, size(own, "short_conv_kernel_size") or 4
    gate = hidden * wide if own.get("use_full_rank_gate") is True else (hidden + wide) * head
    parts = (
        *(Part(f"self_attn.{name}_proj", hidden * wide) for name in "qkvo"),
        Part("self_attn.f_proj", (hidden + wide) * head),
        Part("self_attn.g_proj", gate),
        Part("self_attn.b_proj", hidden * heads),
        Part("self_attn.conv1d", 3 * wide * kernel + heads + wide + head, is_matrix=False),
    )
    return ModelLayer(parts=parts, state=3 * wide * (kernel - 1) * _HALF + heads * head * head * _FP32)


def mamba2(config: HubConfig) -> ModelLayer | None:
    """Return Mamba 2 (Nemotron-H, Granite 4, Bamba, Falcon-H1)."""
    hidden = size(config, "hidden_size")
    heads, head = size(config, "mamba_num_heads", "mamba_n_heads", "num_heads"), size(config, "mamba_head_dim", "mamba_d_head", "head_dim")
    kept = size(config, "ssm_state_size", "mamba_d_state", "state_size")
    if not hidden or not heads or not head or not kept:
        return None
    groups, kernel = size(config, "n_groups", "mamba_n_groups") or 1, size(config, "conv_kernel", "mamba_d_conv") or 4
    wide = size(config, "mamba_d_ssm") or heads * head
    convolved = wide + 2 * groups * kept
    parts = (
        Part("mixer.in_proj", hidden * (wide + convolved + heads)),
        Part("mixer.out_proj", wide * hidden),
        Part("mixer.conv1d", convolved * (kernel + 1) + 3 * heads + wide, is_matrix=False),
    )
    return ModelLayer(parts=parts, state=(kernel - 1) * convolved * _HALF + heads * head * kept * _state_bytes(config))


def mamba(config: HubConfig) -> ModelLayer | None:
    """Return the first Mamba (Jamba, Falcon-Mamba)."""
    hidden, kept = size(config, "hidden_size"), size(config, "mamba_d_state", "state_size")
    if not hidden or not kept:
        return None
    wide = (size(config, "mamba_expand", "expand") or 2) * hidden
    rank, kernel = size(config, "mamba_dt_rank", "time_step_rank") or -(-hidden // 16), size(config, "mamba_d_conv", "conv_kernel") or 4
    norms = rank + 2 * kept if config.get("model_type") == "jamba" else 0
    parts = (
        Part("mamba.in_proj", hidden * 2 * wide),
        Part("mamba.x_proj", wide * (rank + 2 * kept)),
        Part("mamba.dt_proj", rank * wide),
        Part("mamba.out_proj", wide * hidden),
        Part("mamba.conv1d", wide * (kernel + 1) + wide * (kept + 2) + norms, is_matrix=False),
    )
    return ModelLayer(parts=parts, state=(kernel - 1) * wide * _HALF + wide * kept * _FP32)


def convolution(config: HubConfig) -> ModelLayer | None:
    """Return a short convolution (LFM2)."""
    hidden = size(config, "hidden_size")
    if not hidden:
        return None
    kernel = size(config, "conv_L_cache") or 3
    parts = (
        Part("conv.in_proj", 3 * hidden * hidden),
        Part("conv.out_proj", hidden * hidden),
        Part("conv.conv", hidden * kernel, is_matrix=False),
    )
    return ModelLayer(parts=parts, state=hidden * (kernel - 1) * _HALF)


def lightning(config: HubConfig, heads: int, head: int) -> ModelLayer | None:
    """Return lightning attention (MiniMax-Text-01)."""
    hidden = size(config, "hidden_size")
    if not hidden:
        return None
    wide = heads * head
    parts = (
        Part("self_attn.qkv_proj", 3 * hidden * wide),
        Part("self_attn.output_gate", hidden * wide),
        Part("self_attn.out_proj", wide * hidden),
        Part("self_attn.norm", wide, is_matrix=False),
    )
    return ModelLayer(parts=parts, state=heads * head * head * _FP32)


def _state_bytes(config: HubConfig) -> int:
    stated = config.get("mamba_ssm_dtype") or config.get("mamba_ssm_cache_dtype") or "float32"
    return _FP32 if stated == "float32" else _HALF
