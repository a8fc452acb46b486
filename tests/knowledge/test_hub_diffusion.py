"""Models of diffusers: the published counts of their weights, and no figure beyond them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.knowledge.hub_configs.diffusion import picture_parameters
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.model_files import unread_config

FLUX: dict[str, Any] = {"_class_name": "FluxTransformer2DModel", "num_layers": 19, "num_single_layers": 38, "attention_head_dim": 128, "num_attention_heads": 24,
                        "joint_attention_dim": 4096, "pooled_projection_dim": 768, "in_channels": 64, "guidance_embeds": True}  # fmt: skip
WAN: dict[str, Any] = {"_class_name": "WanTransformer3DModel", "attention_head_dim": 128, "text_dim": 4096, "in_channels": 16}
UNET: dict[str, Any] = {"_class_name": "UNet2DConditionModel", "layers_per_block": 2}
CROSS = "CrossAttnDownBlock2D"
UP = "CrossAttnUpBlock2D"


@pytest.mark.parametrize(("config", "params"), [
    pytest.param({**UNET, "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048, "transformer_layers_per_block": [1, 2, 10],
                  "down_block_types": ["DownBlock2D", CROSS, CROSS], "up_block_types": [UP, UP, "UpBlock2D"], "projection_class_embeddings_input_dim": 2816},
                 2_567_463_684, id="SDXL base: 2.6 B in its paper (arXiv 2307.01952)"),
    pytest.param({**UNET, "block_out_channels": [320, 640, 1280, 1280], "cross_attention_dim": 768, "down_block_types": [CROSS] * 3 + ["DownBlock2D"],
                  "up_block_types": ["UpBlock2D"] + [UP] * 3}, 859_520_964, id="Stable Diffusion 1.5: 860 M in its model card"),
    pytest.param({"_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "latent_channels": 4}, 83_653_863, id="its autoencoder"),
    pytest.param(FLUX, 11_901_408_320, id="FLUX.1 dev: 12 B"),
    pytest.param({**FLUX, "guidance_embeds": False}, 11_891_178_560, id="FLUX.1 schnell has no guidance"),
    pytest.param({**WAN, "num_layers": 30, "num_attention_heads": 12, "ffn_dim": 8960}, 1_418_996_800, id="Wan 2.1 of 1.3 B"),
    pytest.param({**WAN, "num_layers": 40, "num_attention_heads": 40, "ffn_dim": 13824}, 14_288_491_584, id="Wan 2.1 of 14 B"),
    pytest.param({"_class_name": "SD3Transformer2DModel", "num_layers": 24, "attention_head_dim": 64, "num_attention_heads": 24, "joint_attention_dim": 4096,
                  "pooled_projection_dim": 2048, "pos_embed_max_size": 192}, 2_084_951_104, id="Stable Diffusion 3 medium: 2 B"),
    pytest.param({"_class_name": "QwenImageTransformer2DModel", "num_layers": 60, "attention_head_dim": 128, "num_attention_heads": 24, "joint_attention_dim": 3584,
                  "in_channels": 64}, 20_430_401_088, id="Qwen-Image: 20 B"),
])  # fmt: skip
def test_the_weights_are_the_published_ones(config: dict[str, Any], params: int) -> None:
    assert picture_parameters(config) == params


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"_class_name": "NewTransformer2DModel"},
        {"_class_name": "NewTransformer2DModel", "counted_parameters": 10**400},
        {**FLUX, "num_layers": None},
        {**UNET, "block_out_channels": [320], "cross_attention_dim": 768},
    ],
)
def test_what_is_not_known_has_no_count(config: dict[str, Any]) -> None:
    assert picture_parameters(config) is None


def test_the_weights_of_a_pipeline_are_said_part_by_part_and_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text(
        json.dumps({"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"], "scheduler": ["diffusers", "X"]})
    )
    (tmp_path / "transformer").mkdir()
    (tmp_path / "transformer" / "config.json").write_text(json.dumps(FLUX))
    (tmp_path / "text_encoder").mkdir()
    (tmp_path / "text_encoder" / "config.json").write_text(json.dumps({"model_type": "clip_text_model", "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 49408, "max_position_embeddings": 77}))  # fmt: skip
    why = unread_config(str(tmp_path)) or ""
    assert "transformer 22.17 GiB, text_encoder 0.23 GiB" in why
    assert "not counted" in why
    assert "22.17 GiB" in (unread_config(str(tmp_path / "transformer")) or "")


def test_what_makes_pictures_is_known_by_name_and_has_no_shape() -> None:
    assert model_shape("sdxl") is None
    assert "unet 4.78 GiB, text_encoder 0.23 GiB, text_encoder_2 1.29 GiB, vae 0.16 GiB" in (unread_config("sdxl") or "")
    assert unread_config("sdxl turbo mega") is None


def test_a_count_stands_in_the_table_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"counted_parameters": 1000000000}')
    assert "lacks sizes for the calculation" in (unread_config(str(tmp_path)) or "")
