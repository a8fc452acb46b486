"""A model of any family, by the class of its config: text, pictures, sound, diffusion (skipped where its library is missing)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from memory.runs import run

from oomdoctor.cli.main import cli

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

TINY = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
CONFIGS = [
    pytest.param({"model_type": "bert", **TINY}, 4, id="an encoder with the loss of masked words"),
    pytest.param({"model_type": "roberta", "architectures": ["RobertaForSequenceClassification"], **TINY}, 4, id="a classifier of texts"),
    pytest.param({"model_type": "vit", **TINY}, 4, id="pictures"),
    pytest.param({"model_type": "whisper", "d_model": 128, "encoder_layers": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_layers": 4}, 4, id="sound to text"),
    pytest.param({"model_type": "wav2vec2", "num_feat_extract_layers": 7, **TINY}, 4, id="a waveform"),
    pytest.param({"model_type": "siglip", "text_config": TINY, "vision_config": {**TINY, "image_size": 32, "patch_size": 8}}, 4, id="texts and pictures"),
    pytest.param({"model_type": "resnet", "hidden_sizes": [32, 64, 128, 256], "embedding_size": 16}, None, id="no layers that are counted"),
]  # fmt: skip
DIFFUSION = [
    pytest.param({"_class_name": "UNet2DConditionModel", "block_out_channels": [32, 64, 64, 64], "cross_attention_dim": 64, "sample_size": 16}, id="a UNet"),
    pytest.param({"_class_name": "FluxTransformer2DModel", "num_layers": 1, "num_single_layers": 1, "num_attention_heads": 2}, id="Flux"),
    pytest.param({"_class_name": "SD3Transformer2DModel", "num_layers": 8, "num_attention_heads": 2, "caption_projection_dim": 128, "sample_size": 16}, id="SD 3"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "depth"), CONFIGS)
def test_a_config_of_transformers_is_enough(written: dict[str, Any], depth: int | None) -> None:
    from oomdoctor.tracing.trace import trace

    found = trace(json.loads(json.dumps(written)), run(length=128, checkpointing="none"))
    assert found.depth == depth
    assert 0.9 * found.params < found.trained <= found.params
    assert found.forward >= found.backward > 0


def test_experts_in_fp32_are_products_by_their_sizes() -> None:
    from oomdoctor.tracing.trace import trace

    config = {"model_type": "mixtral", **TINY, "num_key_value_heads": 2, "num_local_experts": 4, "vocab_size": 500}
    wide, narrow = (trace(config, run(length=128, checkpointing="none", weights=form)) for form in ("fp32", "bf16"))
    assert wide.params == narrow.params
    assert wide.forward > narrow.forward


@pytest.mark.parametrize("written", DIFFUSION)
def test_a_config_of_diffusers_is_enough(written: dict[str, Any]) -> None:
    pytest.importorskip("diffusers")
    from oomdoctor.tracing.trace import trace

    kept, again = (trace(dict(written), run(length=256, checkpointing=how)) for how in ("none", "full"))
    assert kept.params == again.params > 0
    assert kept.forward > again.forward > 0


def test_a_diffusion_model_of_no_known_family_gets_an_estimate(tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    config = {"_class_name": "DiTTransformer2DModel", "num_layers": 4, "sample_size": 32}
    (tmp_path / "config.json").write_text(json.dumps(config))
    arguments = ["estimate", "--model", str(tmp_path), "--method", "full", "--batch", "2", "--length", "256", "--trace", "--format", "json"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    forward = next(phase for phase in json.loads(done.stdout)["phases"] if phase["name"] == "forward")
    assert any("the whole model" in term["basis"] for term in forward["terms"])


@pytest.mark.parametrize(("written", "says"), [
    pytest.param({"_class_name": "NoSuchModel"}, "has no model NoSuchModel", id="a class that there is not"),
    pytest.param({"_class_name": "LTXVideoTransformer3DModel", "num_layers": 1}, "cannot be traced", id="one that wants more than sizes"),
])  # fmt: skip
def test_what_diffusers_cannot_run_says_why(written: dict[str, Any], says: str) -> None:
    pytest.importorskip("diffusers")
    from oomdoctor.errors import Untraceable
    from oomdoctor.tracing.trace import trace

    with pytest.raises(Untraceable, match=says):
        trace(written, run(length=64))
