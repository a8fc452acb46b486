"""What reads pictures and sounds beside a language model, by the sizes of its config; exact to a few per cent of the tower."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.shape import Vision
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, part_of, size, sizes

_MERGED = 2
"""Patches on each side that become one token, where the config does not say."""


def towers(outer: HubConfig, text_hidden: int) -> Vision | None:
    """Return the tower for pictures, with the parameters of one for sounds; None where a config has neither."""
    seen, heard = _vision(outer, text_hidden), _audio(outer, text_hidden)
    if seen is None:
        return Vision(params=heard) if heard else None
    return replace(seen, params=seen.params + heard)


def _vision(outer: HubConfig, text_hidden: int) -> Vision | None:
    """Return a tower by its layers, its patches and one projection into the text."""
    config = part_of(outer, "vision_config") or part_of(part_of(outer, "thinker_config"), "vision_config")
    # Where a config has both, as that of Qwen2-VL, `hidden_size` is the width of the text.
    hidden = size(config, "embed_dim", "hidden_size", "width", "vt_hidden_size")
    layers = size(config, "num_hidden_layers", "depth", "layers", "num_layers", "vt_num_hidden_layers")
    if not hidden or not layers:
        return None
    family = str(config.get("model_type", ""))
    wide = size(config, "intermediate_size", "vt_intermediate_size") or hidden * int(config.get("mlp_ratio") or 4)
    gated = family.startswith(("qwen2_5", "pixtral", "gemma4"))
    patch, image = size(config, "patch_size") or 14, size(config, "image_size") or 0
    patches = size(config, "num_position_embeddings") or ((image // patch) ** 2 if image and family != "pixtral" else 0)
    each = 4 * hidden * (hidden + 1) + (3 if gated else 2) * hidden * wide + wide + 5 * hidden
    params = layers * each + 3 * patch * patch * hidden + patches * hidden + _projection(config, outer, hidden, text_hidden)
    if family.startswith("gemma4"):
        params += 2 * (size(config, "position_embedding_size") or 0) * hidden
    return Vision(
        params=params,
        hidden=hidden,
        layers=layers,
        hidden_layers=size(config, "num_hidden_layers") or 0,
        heads=size(config, "num_attention_heads", "num_heads", "vt_num_attention_heads") or 0,
        intermediate=wide,
        gated=gated,
        patches=patches,
        tokens=size(outer, "mm_tokens_per_image") or 0,
        family=family if family == "pixtral" and outer.get("model_type") != "mistral3" else _family(outer),
    )


def _family(outer: HubConfig) -> str:
    """Return the name of a kind of models, without what tells mixtures and chat models apart.

    InternVL reads videos where the vocabulary of its text model has a word for them (get_video_token of vllm internvl.py).
    """
    family = str(outer.get("model_type", "")).removesuffix("_chat").removesuffix("_moe")
    text = str(part_of(outer, "llm_config").get("model_type", ""))
    return f"{family}_qwen" if family == "internvl" and text.startswith("qwen") else family


def _projection(config: HubConfig, outer: HubConfig, hidden: int, text_hidden: int) -> int:
    """Return what brings pictures into the width of the text: one matrix, or two over patches that are put together."""
    family = str(config.get("model_type", ""))
    merge = size(config, "spatial_merge_size") or size(outer, "spatial_merge_size")
    if family.startswith(("qwen2_vl", "qwen2_5", "qwen3")):
        wide = (merge or _MERGED) ** 2 * hidden
        target = size(config, "out_hidden_size") or text_hidden
        # One more for each layer whose output joins the text on its way (deepstack of Qwen3-VL).
        return (1 + len(sizes(config, "deepstack_visual_indexes"))) * (wide * wide + wide * target)
    if family == "pixtral" and merge:
        return merge**2 * hidden * hidden + hidden * text_hidden + text_hidden * text_hidden
    if size(config, "vt_hidden_size"):
        wide = _MERGED**2 * hidden
        return wide * wide + wide * text_hidden
    return hidden * text_hidden


def _audio(outer: HubConfig, text_hidden: int) -> int:
    """Return the parameters of a tower for sounds; 0 where there is none."""
    config = part_of(outer, "audio_config") or part_of(part_of(outer, "thinker_config"), "audio_config")
    hidden = size(config, "hidden_size", "d_model")
    layers = size(config, "num_hidden_layers", "encoder_layers", "conf_num_hidden_layers")
    if not hidden or not layers:
        return 0
    wide = size(config, "intermediate_size", "encoder_ffn_dim") or 4 * hidden
    # A conformer has two MLPs and a convolution of its own (modeling_gemma3n.py, modeling_gemma4.py).
    conformer = str(config.get("model_type", "")).startswith("gemma")
    each = 4 * hidden * hidden + (2 if conformer else 1) * 2 * hidden * wide + 3 * hidden * hidden * conformer
    return layers * each + hidden * text_hidden
