"""The MLP or the experts of each layer, where not all layers have the same."""

from __future__ import annotations

from oomdoctor.case.shape import Part, Shape
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, size, sizes, texts

_ROUTED = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
_EACH = ("moe_intermediate_size", "expert_ffn_hidden_size")
_LETTERS = {"moe": "E", "mlp": "-", "mamba": "M"}
_UNGATED = {"nemotron_h"}
STATES = {"mamba", "mamba2", "falcon_mamba"}
"""Families whose layers are states alone: they have no MLP, and `intermediate_size` is the width of the state."""
_BOTH = {"gemma4_text", "gemma4"}
"""Families whose layers have an ordinary MLP beside the experts."""


def is_uniform(config: HubConfig, family: str, layers: int) -> bool:
    """Return whether a model has one kind of MLP, or dense layers first and experts in all the others."""
    has = [_has_experts(config, number) for number in range(layers)]
    shared = size(config, "moe_shared_expert_intermediate_size", "share_expert_dim")
    return has == sorted(has) and family not in _BOTH | _UNGATED and not family.startswith("llama4") and not shared


def first_dense(config: HubConfig, layers: int) -> int:
    """Return how many layers at the start have an ordinary MLP."""
    return next((number for number in range(layers) if _has_experts(config, number)), layers)


def feed_forward(shape: Shape, config: HubConfig, family: str, number: int) -> tuple[Part, ...]:
    """Return the MLP of layer `number`, or its experts with their router; nothing for a layer that has neither."""
    if family in STATES:
        return ()
    gated = shape.gated and family not in _UNGATED
    letter = _letter(config, number)
    if letter is not None and letter not in "E-":
        return ()
    if letter == "-" or (letter is None and not _has_experts(config, number)):
        return _dense(shape, config, family, number, gated=gated)
    parts = _experts(shape, config, family, gated=gated)
    return (*parts, *_dense(shape, config, family, number, gated=gated)) if family in _BOTH else parts


def _letter(config: HubConfig, number: int) -> str | None:
    """Return what a layer of Nemotron-H is: one thing, by a letter or by a word. None for other models."""
    pattern, named = config.get("hybrid_override_pattern"), texts(config, "layers_block_type")
    if number < len(named) and not {"moe", "mlp"}.isdisjoint(named):
        return _LETTERS.get(named[number], "*")
    return pattern[number] if isinstance(pattern, str) and number < len(pattern) else None


def _has_experts(config: HubConfig, number: int) -> bool:  # noqa: PLR0911 - one line a key
    if not size(config, *_ROUTED) or number in sizes(config, "mlp_only_layers"):
        return False
    if of := texts(config, "mlp_layer_types"):
        return number < len(of) and of[number] == "sparse"
    if listed := sizes(config, "moe_layer_freq"):
        return number < len(listed) and bool(listed[number])
    if numbers := sizes(config, "moe_layers"):
        return number in numbers
    if isinstance(stated := config.get("moe_layers_enum"), str):
        return str(number) in stated.split(",")
    if number < (size(config, "first_k_dense_replace", "num_dense_layers") or 0):
        return False
    if period := size(config, "expert_layer_period"):
        return number % period == (config.get("expert_layer_offset") or 0)
    step = size(config, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval") or 1
    start = size(config, "moe_layer_start_index") or 0
    return (number + 1) % step == 0 and number >= start


def _dense(shape: Shape, config: HubConfig, family: str, number: int, *, gated: bool) -> tuple[Part, ...]:
    width = _dense_width(shape, config, family, number)
    if not width:
        return ()
    names = ("gate", "up", "down") if gated else ("up", "down")
    return tuple(Part(f"mlp.{name}_proj", shape.hidden * width) for name in names)


def _dense_width(shape: Shape, config: HubConfig, family: str, number: int) -> int:
    if family == "granitemoehybrid":
        return size(config, "shared_intermediate_size") or 0
    widths = sizes(config, "intermediate_size")
    width = (widths[number] if number < len(widths) else 0) or size(
        config, "intermediate_size_mlp", "dense_intermediate_size", "block_dense"
    )
    if width is None and family == "lfm2":
        width = _short_convolution_width(shape, config)
    width = width or size(config, "intermediate_size") or shape.intermediate
    shared = size(config, "num_kv_shared_layers") or 0
    return 2 * width if config.get("use_double_wide_mlp") is True and number >= shape.layers - shared else width


def _short_convolution_width(shape: Shape, config: HubConfig) -> int | None:
    """Return the width of the MLP of LFM2, whose config writes it before it is cut to two thirds and rounded (modeling_lfm2.py)."""
    wide = size(config, "block_ff_dim", "intermediate_size")
    if wide is None or config.get("block_auto_adjust_ff_dim", True) is not True:
        return wide
    times = config.get("block_ffn_dim_multiplier")
    cut = int((times if isinstance(times, (int, float)) else 1.0) * int(2 * wide / 3))
    step = size(config, "block_multiple_of") or 1
    del shape
    return -(-cut // step) * step


def _experts(shape: Shape, config: HubConfig, family: str, *, gated: bool) -> tuple[Part, ...]:
    routed = size(config, *_ROUTED) or 0
    each = size(config, *_EACH) or size(config, "intermediate_size") or shape.intermediate
    many, hidden = 3 if gated else 2, shape.hidden
    inside = size(config, "moe_latent_size", "routed_expert_hidden_size") or hidden
    around = 0 if inside == hidden else 2 * hidden * inside
    shared = _shared_width(shape, config, family, each)
    # Beside an MLP the experts are a module of their own (modeling_gemma4.py).
    parts = [Part("experts" if family in _BOTH else "mlp.experts", many * inside * each * routed, routed=True)]
    if shared:
        parts.append(Part("mlp.shared_experts", many * hidden * shared))
    if around:
        parts.append(Part("mlp.latent_proj", around))
    rest = hidden * routed + _router_extra(config, family, hidden, routed)
    if family == "gpt_oss":
        # Biases of the router and of both matrices of an expert (modeling_gpt_oss.py).
        rest += routed * (1 + 2 * each + hidden)
    return (*parts, Part("mlp.gate", rest, is_matrix=False))


def _router_extra(config: HubConfig, family: str, hidden: int, routed: int) -> int:
    if family in _BOTH:
        # A scale for each hidden element and expert, and three more norms (modeling_gemma4.py).
        return hidden + routed + 3 * hidden
    gate = hidden if size(config, "shared_expert_intermediate_size") else 0
    biased = {
        "deepseek_v3",
        "deepseek_v32",
        "kimi_k2",
        "glm4_moe",
        "glm_moe_dsa",
        "nemotron_h",
        "kimi_linear",
        "minimax_m2",
        "mimo_v2_flash",
    }
    return gate + (routed if family in biased else 0)


def _shared_width(shape: Shape, config: HubConfig, family: str, each: int) -> int:
    if family.startswith("llama4"):
        return size(config, "intermediate_size") or shape.intermediate
    stated = size(
        config, "moe_shared_expert_intermediate_size", "shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size"
    )
    return stated or (size(config, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts") or 0) * each
