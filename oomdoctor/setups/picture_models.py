"""Diffusers pipelines as image generators: the sizes of their parts, from the config.json of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from msgspec.structs import replace

from oomdoctor.case.pictures import PictureModel, UnetLevel
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.knowledge.hub_configs.diffusion import picture_parameters
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, size, sizes, texts
from oomdoctor.knowledge.tables.models import model_row
from oomdoctor.memory.model import parameters as count
from oomdoctor.setups.model_files import read_config

_FILM_VAE = 126_892_531
"""Parameters of AutoencoderKLWan, a variant of which Qwen-Image uses: diffusers autoencoder_kl_wan.py with its defaults."""
_FLUX, _SD3, _QWEN, _WAN = "FluxTransformer2DModel", "SD3Transformer2DModel", "QwenImageTransformer2DModel", "WanTransformer3DModel"
_TEXT = {_FLUX: 512, _SD3: 333, _QWEN: 512, _WAN: 0}
"""Text tokens in addition to those of the image: max_sequence_length of pipeline_flux.py, pipeline_stable_diffusion_3.py (77 of CLIP and
256 of T5), pipeline_qwenimage.py; Wan uses cross-attention to the text."""
_FOLDERS = ("transformer", "unet", "transformer_2", "text_encoder", "text_encoder_2", "text_encoder_3", "image_encoder", "vae")
_EDGE, _LATENT_SIDE = 8, 64
"""Pixels along the edge of a latent position of a UNet, and the positions along the edge of its latents if its config does not tell."""
_DEEP = 48
"""Latent channels of Wan 2.2 5B, whose VAE halves each edge once more."""


@cache
def named_pictures(name: str) -> Shape | None:
    """Return the image generator with a name, or in the folder of its pipeline; None for anything else."""
    if os.path.isfile(os.path.join(name, "model_index.json")):
        folders = ((folder, os.path.join(name, folder)) for folder in _FOLDERS)
        parts = {folder: config for folder, path in folders if os.path.isdir(path) and (config := read_config(path)) is not None}
        return _shape(picture_model(os.path.basename(os.path.abspath(name)), parts))
    row = None if os.path.exists(name) else model_row(name)
    return None if row is None or not row.parts else _shape(picture_model(row.name, row.parts))


def _shape(model: PictureModel | None) -> Shape | None:
    """Return the shape of the denoiser, with the pipeline; the sizes of text models do not describe it."""
    if model is None:
        return None
    return Shape(
        name=model.name, hidden=model.hidden, layers=model.blocks, heads=1, kv_heads=1, head=model.hidden,
        intermediate=round(model.widening * model.hidden), vocab=0, scores=False, pictures=model,
    )  # fmt: skip


def picture_model(name: str, parts: Mapping[str, HubConfig]) -> PictureModel | None:
    """Return the model in these folders; None if no class is a known denoiser."""
    config = next((parts[folder] for folder in _FOLDERS[:2] if folder in parts), {})
    denoiser, made = picture_parameters(config), _unet(config) if "down_block_types" in config else _transformer(config)
    if denoiser is None or made is None:
        return None
    vae = picture_parameters(parts["vae"]) if "vae" in parts else _FILM_VAE
    spare = picture_parameters(parts["transformer_2"]) if "transformer_2" in parts else 0
    readers = tuple(_read(part) for folder, part in parts.items() if "encoder" in folder)
    return replace(made, name=name, denoiser=denoiser, spare=spare or 0, readers=readers, vae=vae or _FILM_VAE)


def _read(config: HubConfig) -> int:
    shape = shape_from_config(config)
    return 0 if shape is None else count.total(shape)


def _transformer(config: HubConfig) -> PictureModel | None:
    """Return the sizes of a transformer, without its parameters."""
    kind = str(config.get("_class_name"))
    heads, head, layers = (size(config, name) for name in ("num_attention_heads", "attention_head_dim", "num_layers"))
    if kind not in _TEXT or not heads or not head or not layers:
        return None
    hidden, single, ffn = heads * head, size(config, "num_single_layers") or 0, size(config, "ffn_dim")
    film = kind == _WAN
    return PictureModel(
        hidden=hidden,
        blocks=layers + single,
        streams=2 if kind in (_SD3, _QWEN) else 1,
        widening=ffn / hidden if ffn else 4.0,
        swapped_units=layers + single // 2,
        edge=32 if film and size(config, "in_channels") == _DEEP else 16,
        text_tokens=_TEXT[kind],
        vae_channels=192 if kind in (_WAN, _QWEN) else 256,
        vae_frames=4 if film else 1,
        frame_stride=4 if film else 1,
        vae_bytes=4 if film else 2,
        guided=kind == _SD3,
    )


def _unet(config: HubConfig) -> PictureModel | None:
    """Return the sizes of a UNet, without its parameters."""
    channels, depth = sizes(config, "block_out_channels"), size(config, "layers_per_block") or 2
    blocks = sizes(config, "transformer_layers_per_block") or [size(config, "transformer_layers_per_block") or 1] * len(channels)
    down, up = texts(config, "down_block_types"), texts(config, "up_block_types")
    if not channels or not len(channels) == len(blocks) == len(down) == len(up):
        return None
    last = len(channels) - 1
    attends = [depth * ("CrossAttn" in down[level]) + (depth + 1) * ("CrossAttn" in up[last - level]) for level in range(len(channels))]
    levels = tuple(
        UnetLevel(width, 2**level, 2 * depth + 1 + 2 * (level == last), blocks[level] * (attends[level] + (level == last)))
        for level, width in enumerate(channels)
    )
    every = sum(level.resnets + level.transformers for level in levels)
    return PictureModel(
        hidden=channels[-1],
        blocks=every,
        swapped_units=every,
        edge=_EDGE,
        side=_EDGE * (size(config, "sample_size") or _LATENT_SIDE),
        text_tokens=77,
        levels=levels,
        vae_channels=256,
        guided=True,
    )
