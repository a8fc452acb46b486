"""Every layer of a model whose layers differ: which kind each is, by the keys of the config that say it.

Kinds are `full`, `window`, `chunk` (attention), `delta`, `kimi`, `mamba2`, `mamba`, `conv`, `lightning` (a state of fixed size), `both`
(attention and Mamba 2 side by side) and `none`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from oomdoctor.case.shape import ModelLayer, Part, Shape
from oomdoctor.knowledge.hub_configs import mixers
from oomdoctor.knowledge.hub_configs.compressed import compressed_layers
from oomdoctor.knowledge.hub_configs.feed_forward import STATES, feed_forward, is_uniform
from oomdoctor.knowledge.hub_configs.sizes import MOST_LAYERS, HubConfig, part_of, size, sizes, texts

_ATTENTION = {"full", "window", "chunk"}
_OWN_WIDTHS = {
    "gemma4_text",
    "gemma4",
    "gemma3n_text",
    "gemma3n",
    "mimo_v2_flash",
    "gpt_oss",
    "nemotron-nas",
    "deepseek_v32",
    "glm_moe_dsa",
}
"""Families whose layers, or parts of them, are wider than what the fields of a shape can say."""
_WORDS = (
    (re.compile(r"sliding|window|swa"), "window"),
    (re.compile(r"chunk"), "chunk"),
    (re.compile(r"conv"), "conv"),
    (re.compile(r"^(?:moe|mlp)$"), "none"),
    (re.compile(r"mamba"), "mamba2"),
    (re.compile(r"hybrid"), "both"),
    (re.compile(r"linear"), "delta"),
)
_PATTERN = {"M": "mamba2", "*": "full"}
"""hybrid_override_pattern of Nemotron-H; layers of any other letter mix no tokens."""
_OF_MAMBA = {"mamba", "falcon_mamba", "jamba"}
_PERIOD = 6
"""sliding_window_pattern of Gemma 3, which early configs leave out."""


def kinds(config: HubConfig, family: str, layers: int) -> list[str]:
    """Return the kind of each layer, from the first on."""
    written = texts(config, "layer_types") or texts(config, "layers_block_type")
    if len(written) >= layers:
        return [_kind(word, family) for word in written[:layers]]
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str) and len(pattern) >= layers:
        return [_PATTERN.get(letter, "none") for letter in pattern[:layers]]
    full = sizes(part_of(config, "linear_attn_config"), "full_attn_layers")
    if full:
        return ["full" if number in full else "kimi" for number in range(1, layers + 1)]
    return _periodic(config, family, layers)


def _kind(word: str, family: str) -> str:
    kind_named = next((kind for pattern, kind in _WORDS if pattern.search(word)), "full")
    if kind_named == "mamba2" and family in _OF_MAMBA:
        return "mamba"
    return "lightning" if kind_named == "delta" and family.startswith("minimax") else kind_named


def _periodic(config: HubConfig, family: str, layers: int) -> list[str]:
    """Return the kinds where the config has a period, a flag for each layer, or says nothing."""
    single = _one_kind(family)
    if single is not None:
        return [single] * layers
    numbers = range(layers)
    if every := size(config, "full_attention_interval"):
        return ["full" if (number + 1) % every == 0 else "delta" for number in numbers]
    if period := size(config, "attn_layer_period"):
        offset = config.get("attn_layer_offset") or 0
        return ["full" if number % period == offset else "mamba" for number in numbers]
    for key, otherwise in (("hybrid_layer_pattern", "window"), ("attn_type_list", "lightning"), ("attn_layer_indices", "mamba2")):
        if flags := sizes(config, key):
            return [_flagged(key, flags, number, otherwise) for number in numbers]
    if not size(config, "sliding_window") or config.get("use_sliding_window", True) is False:
        rotated = sizes(config, "no_rope_layers")
        if size(config, "attention_chunk_size") and family.startswith("llama4"):
            return ["chunk" if (rotated[number] if len(rotated) > number else (number + 1) % 4) else "full" for number in numbers]
        return ["full"] * layers
    return _windowed(config, family, layers)


def _one_kind(family: str) -> str | None:
    if family in ("mamba", "falcon_mamba"):
        return "mamba"
    if family in ("falcon_h1", "mamba2"):
        return "both" if family == "falcon_h1" else "mamba2"
    return None


def _flagged(key: str, flags: list[int], number: int, otherwise: str) -> str:
    if key == "attn_layer_indices":
        return "full" if number in flags else otherwise
    flag = flags[number] if number < len(flags) else 0
    return otherwise if bool(flag) is (key == "hybrid_layer_pattern") else "full"


def _windowed(config: HubConfig, family: str, layers: int) -> list[str]:
    """Return the layers with a window where no list names them: all, every second, or all but one of a few."""
    period = size(config, "sliding_window_pattern", "_sliding_window_pattern")
    if period is None and family.startswith("gemma3"):
        period = _PERIOD
    if family == "gemma2":
        period = 2
    if period is not None:
        return ["window" if (number + 1) % period else "full" for number in range(layers)]
    first = size(config, "max_window_layers") if family.startswith("qwen") else 0
    return ["window" if number >= (first or 0) else "full" for number in range(layers)]


def with_layers(shape: Shape, config: HubConfig, family: str) -> Shape:
    """Return the shape with each of its layers, where they are not all alike; else with how many of them have the window."""
    if shape.layers > MOST_LAYERS:
        return shape
    if (each := compressed_layers(shape, config)) is not None:
        return replace(shape, each=each, window=None)
    if isinstance(blocks := config.get("block_configs"), list):
        return _searched(shape, blocks)
    kinds_of = kinds(config, family, shape.layers)
    if set(kinds_of) <= {"full", "window"} and family not in _OWN_WIDTHS and is_uniform(config, family, shape.layers):
        windowed = kinds_of.count("window")
        return replace(shape, window=shape.window if windowed else None, windowed_layers=None if windowed == shape.layers else windowed)
    made = [_layer(shape, config, family, kind, number) for number, kind in enumerate(kinds_of)]
    whole = tuple(layer for layer in made if layer is not None)
    return replace(shape, each=whole, window=None, windowed_layers=None) if len(whole) == shape.layers else shape


def _layer(shape: Shape, config: HubConfig, family: str, kind: str, number: int) -> ModelLayer | None:
    mixer = _mixer(shape, config, family, kind, number)
    if mixer is None:
        return None
    norms = (4 if shape.sandwich_norm else 1 if family == "nemotron_h" or family in STATES else 2) * shape.hidden
    parts = (
        *mixer.parts,
        *feed_forward(shape, config, family, number),
        Part("norms", norms, is_matrix=False),
        *_beside(shape, config, family),
    )
    return replace(mixer, parts=parts)


def _mixer(shape: Shape, config: HubConfig, family: str, kind: str, number: int) -> ModelLayer | None:
    if kind == "none":
        return ModelLayer(parts=())
    states: dict[str, Callable[[HubConfig], ModelLayer | None]] = {
        "delta": mixers.delta_net, "kimi": mixers.kimi_delta, "mamba2": mixers.mamba2, "mamba": mixers.mamba, "conv": mixers.convolution,
    }  # fmt: skip
    if kind in states:
        return states[kind](config)
    if kind == "lightning":
        return mixers.lightning(config, shape.heads, shape.head)
    attends = _attention(shape, config, family, kind, number)
    if kind != "both" or attends is None:
        return attends
    beside = mixers.mamba2(config)
    return None if beside is None else replace(attends, parts=(*attends.parts, *beside.parts), state=beside.state)


def _attention(shape: Shape, config: HubConfig, family: str, kind: str, number: int) -> ModelLayer | None:
    if shape.latent is not None:
        shared = texts(config, "indexer_types")
        return mixers.latent(config, shape.heads, shares_index=number < len(shared) and shared[number] == "shared")
    heads, kv_heads, head = shape.heads, shape.kv_heads, shape.head
    value = size(config, "v_head_dim") or head
    window = size(config, "attention_chunk_size") if kind == "chunk" else size(config, "sliding_window") if kind == "window" else None
    if kind == "window" and size(config, "swa_head_dim"):
        heads, kv_heads = size(config, "swa_num_attention_heads") or heads, size(config, "swa_num_key_value_heads") or kv_heads
        head, value = size(config, "swa_head_dim") or head, size(config, "swa_v_head_dim") or value
    shares = False
    if kind == "full" and size(config, "global_head_dim"):
        head = value = size(config, "global_head_dim") or head
        shares = config.get("attention_k_eq_v") is True
        kv_heads = (size(config, "num_global_key_value_heads") or kv_heads) if shares else kv_heads
    own = shape.layers - (size(config, "num_kv_shared_layers") or 0)
    return mixers.attention(
        config,
        heads=heads,
        kv_heads=kv_heads,
        head=head,
        value=value,
        window=window,
        biased=shape.attention_bias,
        biased_output=shape.output_bias,
        normed=shape.qk_norm,
        sunk=family == "gpt_oss",
        gated=family.startswith(("qwen3_next", "qwen3_5")) or config.get("attn_output_gate") is True,
        shares_kv=shares,
        borrows_kv=number >= own,
    )


def _beside(shape: Shape, config: HubConfig, family: str) -> tuple[Part, ...]:
    """Return what a layer has beside mixing tokens and its MLP: inputs of its own (Gemma 3n and 4)."""
    own = size(config, "hidden_size_per_layer_input")
    if own is None or not family.startswith(("gemma3n", "gemma4")):
        return ()
    gates = (Part("per_layer_input_gate", shape.hidden * own), Part("per_layer_projection", own * shape.hidden))
    return (*gates, Part("post_per_layer_input_norm", shape.hidden, is_matrix=False))


def _searched(shape: Shape, blocks: list[object]) -> Shape:
    """Return a model whose layers an architecture search chose (Nemotron NAS): each has its own heads and width, or neither."""
    made = [_block(shape, block) for block in blocks[:MOST_LAYERS] if isinstance(block, dict)]
    return replace(shape, each=tuple(made)) if len(made) == shape.layers else shape


def _block(shape: Shape, block: HubConfig) -> ModelLayer:
    asks, wide = part_of(block, "attention"), part_of(block, "ffn")
    parts = [Part("norms", 2 * shape.hidden, is_matrix=False)]
    cache = 0
    if asks.get("no_op") is not True and asks.get("replace_with_linear") is not True:
        key = shape.heads // (size(asks, "n_heads_in_group") or 1) * shape.head
        parts += [Part("self_attn.q_proj", shape.hidden * shape.query), Part("self_attn.o_proj", shape.query * shape.hidden)]
        parts += [Part("self_attn.k_proj", shape.hidden * key), Part("self_attn.v_proj", shape.hidden * key)]
        cache = 2 * key
    elif asks.get("replace_with_linear") is True:
        parts.append(Part("self_attn.linear_attn", shape.hidden * shape.hidden))
    if wide.get("replace_with_linear") is True:
        parts.append(Part("mlp.linear_mlp", shape.hidden * shape.hidden))
    elif wide.get("no_op") is not True:
        width = _multiplied(wide.get("ffn_mult"), shape.hidden)
        parts += [Part(f"mlp.{name}_proj", shape.hidden * width) for name in ("gate", "up", "down")]
    return ModelLayer(parts=tuple(parts), cache=cache)


def _multiplied(times: object, hidden: int) -> int:
    """Return the width of a searched MLP (_ffn_mult_to_intermediate_size of modeling_decilm.py): 2/3 of it, in steps of 256."""
    width = int(2 * (times if isinstance(times, (int, float)) and 0 < times < 100 else 0) * hidden / 3)  # noqa: PLR2004 - no MLP is wider
    return -(-width // 256) * 256
