"""What the failed program does: advice for training is wrong for a program that only runs inference, and tokens are not images."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from oomdoctor.case.event import Event
from oomdoctor.case.incident import Incident
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.records.framework import FrameworkCore

PICTURES = "pictures"
"""`incident.inference` of a program that generates images, about which nothing else is known."""
_OF_TRAINING = ("backward", "optimizer-step", "evaluation", "checkpoint-save")
"""Phases that only training runs have."""
_TRAINING_SETTINGS = frozenset(
    f"training.{name}"
    for name in (
        "accumulation", "eval_batch", "finetuning", "fsdp", "gradient_checkpointing", "lora_rank", "micro_batch", "optimizer", "packing",
        "zero_stage",
    )
)  # fmt: skip
"""Settings that an inference-only program does not have."""
_MODELS = ("training.model", "log.model_name_or_path", "log.model", "log.base_model")
_PICTURES = re.compile(
    r"(?i)\b(?:text2(?:video|image)|[ti]2v(?:id)?\b|wan2|hunyuan(?:3d|video)|trellis|flux|sdxl|stable.?diffusion|z-?image|qwen-?image|cogvideo"
    r"|ltx-?(?:video|2)|vae\b|upscal|denois|ksampler|num_inference_steps|text_encoder)"
)
_TRAINS = re.compile(r"(?i)train|lora|\bepoch|\bloss\b|optimizer|backward|finetun|dataset")
_QUANTIZED = (
    r"(?i)[-_./ ](?:awq|gptq|exl[23]|bnb-?4bit|4bit|int4|nf4|mxfp4|nvfp4|fp8|w4a16|w8a8|"
    r"i?q[2-8]_(?:[01k]|k_[sml]|xx?s|nl|m)(?:_\w{1,3})?)(?![a-z])"
)
"""Names of formats in names of models and files."""


def inference_facts(
    incidents: Sequence[Incident],
    events: Sequence[Event],
    programs: Mapping[str, str],
    purposes: Mapping[str, str],
    known: Mapping[str, Fact],
    frameworks: Sequence[FrameworkCore] = (),
) -> dict[str, Fact]:
    """Return `incident.inference`: the name of the program, if the one that failed trains nothing; otherwise nothing.

    `programs` and `purposes` are keyed by signature. The message of the failure decides, if its program has only one purpose. Training
    logs show inference programs as well (samples of a policy, validation images), so one sign of training
    outweighs all others.
    """
    if not incidents or incidents[0].phase in _OF_TRAINING:
        return {}
    signature = incidents[0].root.signature
    if signature in purposes:
        return {"incident.inference": programs[signature]} if purposes[signature] == "inference" else {}
    if _trains(known) or any(purposes.get(event.signature) == "training" for event in events):
        return {}
    answering = (event for event in events if purposes.get(event.signature) == "inference")
    named = next((event.fields.get("inference", programs[event.signature]) for event in answering), None)
    if named is None:
        serving = {record.framework for record in frameworks if record.in_logs is not None and record.in_logs.purpose == "inference"}
        named = next((name for name in (known.get("training.framework"), known.get("log.framework")) if name in serving), None)
    return {} if named is None else {"incident.inference": str(named)}


def is_running(facts: Mapping[str, Fact]) -> bool:
    """Return whether it is known what program is running, or what it was doing."""
    names = ("incident.inference", "incident.works_on", "training.framework", "log.framework", "derived.step")
    return any(facts.get(name) is not None for name in names)


def makes_pictures(texts: Iterable[str], known: Mapping[str, Fact]) -> bool:
    """Return whether lines around a failure mention image generation but not training, and no setting or step belongs to training."""
    lines = list(texts)
    trains = _trains(known) or any(_TRAINS.search(line) for line in lines)
    return not trains and any(_PICTURES.search(line) for line in lines)


def works_on(known: Mapping[str, Fact], frameworks: Sequence[FrameworkCore]) -> dict[str, Fact]:
    """Return `incident.works_on`: what the running program works on, if that is always the same."""
    kinds = {record.framework: record.works_on for record in frameworks if record.works_on}
    names = (known.get(name) for name in ("training.framework", "log.framework", "incident.inference", "incident.program"))
    kind = next((kinds[str(name)] for name in names if name in kinds), None)
    return {"incident.works_on": kind} if kind else {}


def quantised(known: Mapping[str, Fact], texts: Iterable[str]) -> dict[str, Fact]:
    """Return `incident.quantised`: how the weights are already quantized, from the model name or the program's output."""
    named = str(known.get("training.quantization", "")).lower()
    if named and named not in ("none", "null", "false"):
        return {"incident.quantised": named}
    names = (str(known[name]) for name in _MODELS if known.get(name))
    match = next((hit for text in (*names, *texts) if (hit := re.search(_QUANTIZED, text)) is not None), None)
    return {} if match is None else {"incident.quantised": match[0].strip("-_. ").lower()}


def _trains(known: Mapping[str, Fact]) -> bool:
    """Return whether the settings of the run are training settings."""
    return known.get("training.method") != "serve" and not known.keys().isdisjoint(_TRAINING_SETTINGS)
