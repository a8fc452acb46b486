"""What makes pictures and films: published figures, what each setting does, and one answer through every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import oomdoctor
from oomdoctor.api.results import RunEstimate
from oomdoctor.case.estimate import Estimate
from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError
from oomdoctor.setups.words.question import read_question
from oomdoctor.units import GIB

MAKES: dict[str, Any] = {"method": "generate", "counter": "max_allocated"}
MUSUBI: dict[str, Any] = {"finetuning": "lora", "optimizer": "adamw8bit", "gradient_checkpointing": True}
FP8 = {**MUSUBI, "weight_format": "fp8"}


def asked(model: str, settings: dict[str, Any], framework: str | None = None, gpu: str | None = None) -> RunEstimate:
    return oomdoctor.estimate(model=model, settings=settings, framework=framework, gpu=gpu)


def memory(model: str, settings: dict[str, Any], framework: str | None = None) -> Estimate:
    return estimate_of(asked(model, settings, framework))


def estimate_of(run: RunEstimate) -> Estimate:
    assert isinstance(run.estimate, Estimate)
    return run.estimate


@pytest.mark.parametrize(("model", "settings", "framework", "gib"), [
    # derekl35/diffusers-quantization-benchmarks, one picture of 1024 x 1024 on an H100; the peak is that of torch.
    pytest.param("FLUX.1-dev", MAKES, None, 36.166, id="FLUX whole on the card"),
    pytest.param("FLUX.1-dev", {**MAKES, "offload_params": "cpu"}, None, 23.271, id="FLUX part by part"),
    # huggingface/blog quanto-diffusers.md.
    pytest.param("stable diffusion 3 medium", MAKES, None, 18.765, id="SD3 medium whole on the card"),
    # musubi-tuner docs/qwen_image.md, a batch of one at 1024 x 1024 with checkpointing; GB as nvidia-smi shows them.
    pytest.param("Qwen-Image", MUSUBI, "musubi-tuner", 42, id="LoRA of Qwen-Image"),
    pytest.param("Qwen-Image", FP8, "musubi-tuner", 30, id="LoRA over fp8"),
    pytest.param("Qwen-Image", {**FP8, "swapped_blocks": 16}, "musubi-tuner", 24, id="sixteen blocks on the host"),
    pytest.param("Qwen-Image", {**FP8, "swapped_blocks": 45}, "musubi-tuner", 12, id="forty-five blocks on the host"),
])  # fmt: skip
def test_a_published_figure_is_in_the_range(model: str, settings: dict[str, Any], framework: str | None, gib: float) -> None:
    found = memory(model, settings, framework)
    assert found.low <= gib * GIB <= found.high
    assert found.expected == pytest.approx(gib * GIB, rel=0.2)


@pytest.mark.parametrize(("model", "settings", "more", "grows"), [
    pytest.param("sdxl", {"finetuning": "lora"}, {"gradient_checkpointing": False}, True, id="without checkpointing all is kept"),
    pytest.param("sdxl", {"finetuning": "lora"}, {"finetuning": "full"}, True, id="all weights have gradients and states"),
    pytest.param("sdxl", {"finetuning": "lora"}, {"caches_text": False}, True, id="text encoders stay on the card"),
    pytest.param("sdxl", {"finetuning": "lora"}, {"caches_latents": False}, True, id="a VAE works before each batch"),
    pytest.param("sdxl", {"finetuning": "lora"}, {"micro_batch": 8}, True, id="more pictures at a time"),
    pytest.param("sdxl", {"finetuning": "lora"}, {"picture_side": 512}, False, id="smaller pictures"),
    pytest.param("flux", {"finetuning": "lora"}, {"swapped_blocks": 20}, False, id="blocks on the host"),
    pytest.param("flux", {"finetuning": "lora"}, {"weight_format": "nf4"}, False, id="packed weights"),
    pytest.param("flux", MAKES, {"vae_tile": 512}, False, id="pixels in tiles"),
    pytest.param("wan 2.1 14b", MAKES, {"video_frames": 161}, True, id="a longer film"),
    pytest.param("wan 2.1 14b", MAKES, {"offload_params": "cpu"}, False, id="parts in turn"),
])  # fmt: skip
def test_a_setting_moves_the_need(model: str, settings: dict[str, Any], more: dict[str, Any], grows: bool) -> None:
    before, after = (memory(model, each).expected for each in (settings, {**settings, **more}))
    assert (after > 1.01 * before) if grows else (after < 0.99 * before)


def test_frames_are_of_films_alone() -> None:
    assert asked("sdxl", {**MAKES, "video_frames": 81}).estimate == asked("sdxl", MAKES).estimate


def test_comfyui_leaves_on_the_host_what_does_not_fit() -> None:
    settings = {"picture_width": 832, "picture_height": 480, "video_frames": 81}
    run = asked("wan 2.1 1.3b", settings, "comfyui", "8GB")
    assert run.fits == "yes"
    assert any("which fits; the rest of the weights waits on the host" in each.text.en for each in run.estimate.assumptions)
    assert asked("wan 2.1 1.3b", {**settings, "method": "generate"}, None, "8GB").fits == "no"


QUESTIONS: list[tuple[str, str, str | None, dict[str, Any]]] = [
    ("will SDXL LoRA fit on 12 GB?", "stabilityai/stable-diffusion-xl-base-1.0", "12GB", {"finetuning": "lora"}),
    ("can I run FLUX.1-dev at 1024x768 on a 4090 with offload?", "black-forest-labs/FLUX.1-dev", "4090", {"method": "generate", "offload_params": "cpu", "picture_width": 1024, "picture_height": 768}),
    ("does Wan 2.1 14B make 720p films of 81 frames on an H100", "Wan-AI/Wan2.1-T2V-14B-Diffusers", "H100", {"method": "generate", "picture_width": 1280, "picture_height": 720, "video_frames": 81}),
    ("is a 5090 enough for Qwen-Image LoRA training in fp8", "Qwen/Qwen-Image", "5090", {"finetuning": "lora", "weight_format": "fp8"}),
    ("full fine-tuning of SD3.5 Large on one A100-80GB?", "stabilityai/stable-diffusion-3.5-large", "A100-80GB", {"finetuning": "full"}),
    ("用 12GB 显卡训练 SDXL 的 LoRA 够吗？", "stabilityai/stable-diffusion-xl-base-1.0", "12GB", {"finetuning": "lora"}),
    ("4090 能跑 FLUX.1-dev 推理吗", "black-forest-labs/FLUX.1-dev", "4090", {"method": "generate"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "model", "gpu", "says"), [pytest.param(*each, id=each[0]) for each in QUESTIONS])
def test_a_question_about_pictures_is_understood(text: str, model: str, gpu: str | None, says: dict[str, Any]) -> None:
    worded = read_question(text)
    assert (worded.model, worded.gpu, worded.serves) == (model, gpu, False)
    known = worded.settings.known()
    assert {name: known.get(name) for name in says} == says
    assert CliRunner().invoke(cli, ["estimate", text]).exit_code in (0, 1)


@pytest.mark.parametrize("text", [
    pytest.param("will Qwen3-32B QLoRA fit on a 4090?", id="a text model"),
    pytest.param("is the influx of tokens a problem for Llama-3.1-8B on a 4090?", id="a word that ends like a name"),
])  # fmt: skip
def test_a_question_about_text_is_none_about_pictures(text: str) -> None:
    asked_for = read_question(text)
    assert asked_for.settings.picture_width is None
    assert asked_for.model is not None
    assert "B" in asked_for.model


COMMAND = """\
accelerate launch src/musubi_tuner/qwen_image_train_network.py --dit qwen_image_bf16.safetensors --vae vae.safetensors \\
  --model_version original --blocks_to_swap 16 --fp8_base --fp8_scaled --gradient_checkpointing --network_dim 16 \\
  --network_module networks.lora_qwen_image --optimizer_type adamw8bit --sdpa
"""


def test_every_door_gives_one_answer(tmp_path: Path) -> None:
    settings = {**FP8, "swapped_blocks": 16, "lora_rank": 16}
    library = memory("Qwen-Image", settings, "musubi-tuner")
    script = tmp_path / "train.sh"
    script.write_text(COMMAND, encoding="utf-8")
    assert estimate_of(oomdoctor.estimate(script)).expected == library.expected
    options = ["Qwen-Image", "--framework", "musubi-tuner", "--method", "lora", "--weights", "fp8", "--optimizer", "adamw8bit"]
    options += ["--checkpointing", "--swap", "16", "--rank", "16", "--format", "json"]
    told = CliRunner().invoke(cli, ["estimate", *options])
    assert json.loads(told.stdout)["per_gpu_bytes"]["expected"] == library.expected


def test_tables_of_tokens_are_not_for_pictures() -> None:
    with pytest.raises(UsageError, match="sdxl generates images"):
        oomdoctor.sweep(model="sdxl", axes="batch")
    with pytest.raises(UsageError, match="sdxl generates images"):
        oomdoctor.compare_formats(model="sdxl", gpu="24GB")


@pytest.mark.parametrize("size", ["wide", "12x", "1024 by 1024"])
def test_a_size_of_no_picture_is_refused(size: str) -> None:
    assert isinstance(CliRunner().invoke(cli, ["estimate", "sdxl", "--size", size]).exception, UsageError)
