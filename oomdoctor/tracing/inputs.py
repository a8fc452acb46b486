"""Inputs of a model, by the names of its arguments: sizes from its config, and no values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from oomdoctor.errors import Untraceable

_TEXT = 512
"""Tokens of a prompt for a diffusion model that does not say how many it takes; CLIP's have 77."""
_CLIP_TEXT = 77
_WAVE = 320
"""Samples of a waveform for each frame where the config has no strides (wav2vec 2)."""


def of_transformers(model: Any, batch: int, length: int) -> dict[str, object]:
    """Return what a model of transformers takes: tokens, and pictures or sound where it takes them."""
    taken, config = inspect.signature(model.forward).parameters, model.config
    main = getattr(model, "main_input_name", "input_ids")
    tokens = torch.ones(batch, length or 1, dtype=torch.long)
    if main == "pixel_values":
        return {"pixel_values": _pictures(config, batch)}
    if main == "input_features":
        sound = torch.empty(batch, getattr(config, "num_mel_bins", 80), 2 * getattr(config, "max_source_positions", length))
        return {"input_features": sound, **({"labels": tokens} if "labels" in taken else {})}
    if main == "input_values":
        return {"input_values": torch.empty(batch, (length or 1) * _WAVE)}
    given: dict[str, object] = {"input_ids": tokens}
    if "labels" in taken and not _classifies(model):
        given["labels"] = tokens
    if "pixel_values" in taken and getattr(config, "vision_config", None) is not None and "labels" not in taken:
        given["pixel_values"] = _pictures(config.vision_config, batch)
    return given


def _classifies(model: Any) -> bool:
    return "Classification" in type(model).__name__ or "QuestionAnswering" in type(model).__name__


def _pictures(config: Any, batch: int) -> torch.Tensor:
    if not hasattr(config, "image_size"):
        config = getattr(config, "vision_config", config)
    size = getattr(config, "image_size", None) or 224
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    return torch.empty(batch, getattr(config, "num_channels", 3), height, width)


def of_diffusers(model: Any, batch: int, length: int) -> dict[str, object]:
    """Return what a model of diffusers takes; `length` are the tokens of a picture for those that take tokens.

    Raise Untraceable where it wants something of which nothing is known.
    """
    config, given = model.config, {}
    for name, parameter in inspect.signature(model.forward).parameters.items():
        make = _ARGUMENTS.get(name)
        wants = parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        made = None if make is None or (make is _text_mask and not wants) else make(config, batch, length)
        if made is not None:
            given[name] = made
        elif wants:
            raise Untraceable(f"{type(model).__name__} requires `{name}`, about which nothing is known")
    return given


def _first(config: Any, *names: str) -> int | None:
    """Return the first number that a config has by one of these names."""
    values = (config.get(name) for name in names)
    return next((int(max(value)) if isinstance(value, (list, tuple)) else int(value) for value in values if value), None)


def _sample(config: Any, batch: int, length: int) -> torch.Tensor:
    del length
    height, width = _area(config)
    return torch.empty(batch, _first(config, "in_channels") or 4, height, width)


def _area(config: Any) -> tuple[int, int]:
    """Return height and width as the config has them; what has none is taken as for 1024 pixels and 8 of them for each latent."""
    size = config.get("sample_size")
    if size is None:
        return (config.get("sample_height") or 128, config.get("sample_width") or 128)
    return tuple(size)[-2:] if isinstance(size, (list, tuple)) else (size, size)


def _hidden(config: Any, batch: int, length: int) -> torch.Tensor:
    channels = _first(config, "in_channels") or 16
    if "axes_dims_rope" in config and "sample_size" not in config:
        # A row of patches (Flux and what follows it).
        return torch.empty(batch, length, channels)
    patch = config.get("patch_size")
    if isinstance(patch, (list, tuple)) or "num_frames" in config or "sample_frames" in config or "patch_size_t" in config:
        frames = ((_first(config, "sample_frames", "num_frames") or 81) - 1) // 4 + 1
        size = (frames, channels) if "sample_frames" in config else (channels, frames)
        height, width = _area(config) if "sample_height" in config else (60, 104)
        return torch.empty(batch, *size, height, width)
    return torch.empty(batch, channels, *_area(config))


def _text(config: Any, batch: int, length: int) -> torch.Tensor | None:
    del length
    width = _first(config, "caption_channels", "joint_attention_dim", "text_embed_dim", "text_dim", "cap_feat_dim", "cross_attention_dim")
    if width is None:
        return None
    return torch.empty(batch, _text_length(config), width)


def _text_length(config: Any) -> int:
    clip = config.get("cross_attention_dim") and not config.get("caption_channels")
    return _first(config, "max_text_seq_length", "text_len") or (_CLIP_TEXT if clip else _TEXT)


def _text_mask(config: Any, batch: int, length: int) -> torch.Tensor:
    del length
    return torch.ones(batch, _text_length(config), dtype=torch.bool)


def _pooled(config: Any, batch: int, length: int) -> torch.Tensor | None:
    del length
    width = _first(config, "pooled_projection_dim")
    return None if width is None else torch.empty(batch, width)


def _conditions(config: Any, batch: int, length: int) -> dict[str, object] | None:
    del length
    if config.get("addition_embed_type") == "text_time":
        ids = 6 * config["addition_time_embed_dim"]
        return {"text_embeds": torch.empty(batch, config["projection_class_embeddings_input_dim"] - ids), "time_ids": torch.empty(batch, 6)}
    return {"resolution": None, "aspect_ratio": None} if config.get("caption_channels") else None


def _places(rows: Callable[[Any, int], int]) -> Callable[[Any, int, int], torch.Tensor]:
    def make(config: Any, batch: int, length: int) -> torch.Tensor:
        del batch
        return torch.empty(rows(config, length), len(config.get("axes_dims_rope") or (1, 1, 1)))

    return make


def _guidance(config: Any, batch: int, length: int) -> torch.Tensor | None:
    del length
    return torch.empty(batch) if config.get("guidance_embeds") else None


def _times(config: Any, batch: int, length: int) -> torch.Tensor:
    del config, length
    return torch.ones(batch)


def _labels(config: Any, batch: int, length: int) -> torch.Tensor | None:
    del length
    return torch.ones(batch, dtype=torch.long) if config.get("num_embeds_ada_norm") and not config.get("caption_channels") else None


_ARGUMENTS: Mapping[str, Callable[[Any, int, int], Any]] = {
    "sample": _sample,
    "hidden_states": _hidden,
    "timestep": _times,
    "encoder_hidden_states": _text,
    "encoder_attention_mask": _text_mask,
    "pooled_projections": _pooled,
    "added_cond_kwargs": _conditions,
    "img_ids": _places(lambda _, length: length),
    "txt_ids": _places(lambda _, __: _TEXT),
    "guidance": _guidance,
    "class_labels": _labels,
}
"""What makes an argument of a diffusion model; None where this model does without."""
