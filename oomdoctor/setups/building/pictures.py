"""A run that generates images or videos, or trains a model that does, according to its settings."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.pictures import PictureModel, PictureRun
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Adapters, Setup
from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.knowledge.tables.memory import adapter_targets, known_format, weight_format
from oomdoctor.setups.assumed import assumed

_FILM = (832, 480, 81)
"""Default width, height and frames of a video: the example of diffusers pipelines/wan/pipeline_wan.py."""
_ON, _OFF = ("on", "已"), ("off", "未")
_LATENTS = ("latents are precomputed before training", "训练前已缓存 latents"), ("a VAE on the card", "VAE 在显卡上")
_TEXTS = ("text embeddings are precomputed before training", "训练前已缓存文本编码"), ("text encoders on the card", "文本编码器在显卡上")
_YES, _FITS = "yes", "comfyui"


def on_pictures(setup: Setup, settings: RunSettings, framework: str | None) -> Setup:
    """Return the setup of such a run; a text model's setup stays as it is."""
    model = setup.shape.pictures
    if model is None:
        return setup
    does = _program(framework, setup.task)
    width, height, frames = _size(settings, model)
    run = PictureRun(
        model=model,
        width=width,
        height=height,
        frames=frames,
        by_parts=_said(bool(settings.offload_params) if settings.offload_params is not None else None, does["by_parts"]),
        fits_itself=does["framework"] == _FITS and setup.task != "train",
        swapped=min(positive(settings.swapped_blocks) or 0, model.swapped_units),
        caches_latents=_said(settings.caches_latents, does["caches_latents"]),
        caches_text=_said(settings.caches_text, does["caches_text"]),
        tile=positive(settings.vae_tile),
    )
    adapters = _adapters(setup, settings, does)
    told = weight_format(settings.weight_format or settings.quantization or "")
    kept = does["whole" if setup.task == "train" and adapters is None else "frozen"]
    packed = setup.weights if setup.weights.packed and setup.task == "train" else None
    return replace(
        setup,
        pictures=run,
        adapters=adapters,
        weights=told or packed or known_format(settings.weights or kept),
        batch=positive(settings.micro_batch) or positive(settings.picture_batch) or 1,
        length=run.tokens,
        checkpointing="full" if _said(settings.gradient_checkpointing, does["checkpointing"]) else "none",
        even_lengths=True,
        reference=False,
        rollout=None,
    )


def picture_assumptions(setup: Setup, settings: RunSettings) -> Iterator[Assumption]:
    """Yield what had to be assumed about such a run."""
    run = setup.pictures
    if run is None:
        return
    if positive(settings.picture_side) is None and positive(settings.picture_width) is None:
        frames = (f", {run.frames} frames", f"，{run.frames} 帧") if run.frames > 1 else ("", "")
        en, zh = f"{run.width} x {run.height} pixels{frames[0]}", f"{run.width} x {run.height} 像素{frames[1]}"
        yield assumed("picture_size", en, zh)
    if setup.task != "train":
        if settings.offload_params is None:
            text = ("each part on the card only while in use", "各部分只在工作时放在显卡上")
            yield assumed("by_parts", *(text if run.by_parts else ("all parts on the card at once", "所有部分同时放在显卡上")))
        return
    if settings.finetuning is None:
        rank = setup.adapters.rank if setup.adapters else 0
        yield assumed("finetuning", f"LoRA of rank {rank}", f"训练 LoRA，秩为 {rank}")
    if positive(settings.micro_batch) is None:
        yield assumed("micro_batch", "batch size 1 per card", "每张卡的批大小为 1")
    if settings.gradient_checkpointing is None:
        en, zh = _ON if setup.checkpointing == "full" else _OFF
        yield assumed("gradient_checkpointing", f"gradient checkpointing is {en}", f"梯度检查点{zh}开启")
    if settings.caches_latents is None:
        texts = _LATENTS[not run.caches_latents]
        yield assumed("caches_latents", *texts, is_question=not run.caches_latents)
    if settings.caches_text is None:
        texts = _TEXTS[not run.caches_text]
        yield assumed("caches_text", *texts)
    if settings.weights is None and settings.weight_format is None and setup.adapters is None:
        yield assumed("weights", f"weights trained in {setup.weights.name}", f"权重以 {setup.weights.name} 训练")


def _said(value: bool | None, default: str) -> bool:
    return default == _YES if value is None else value


def _program(framework: str | None, task: str) -> Row:
    rows = {row["framework"]: row for row in table("picture_programs") if row["task"] == ("train" if task == "train" else "infer")}
    return rows.get(framework or "", rows["unknown"])


def _size(settings: RunSettings, model: PictureModel) -> tuple[int, int, int]:
    """Return width, height and frames: as given, or otherwise those in the model's own example."""
    film = model.vae_frames > 1
    side = positive(settings.picture_side) or model.side
    width, height, frames = _FILM if film and positive(settings.picture_side) is None else (side, side, _FILM[2])
    told = positive(settings.video_frames)
    return positive(settings.picture_width) or width, positive(settings.picture_height) or height, (told or frames) if film else 1


def _adapters(setup: Setup, settings: RunSettings, does: Row) -> Adapters | None:
    if setup.task != "train" or (settings.finetuning or "").lower().startswith("full"):
        return None
    targets = adapter_targets(settings.lora_targets or "") or adapter_targets("all" if does["every_matrix"] == _YES else "q,k,v,o")
    return Adapters(rank=positive(settings.lora_rank) or int(does["rank"]), targets=targets)
