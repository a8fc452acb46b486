"""A question in somebody's words ("will Qwen3-32B QLoRA fit on a 4090?"): the run, the program and the cards that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings
from oomdoctor.knowledge.tables.stated_words import program_in
from oomdoctor.setups.words.told import read_told

_FEWEST_WORDS = 4
_CHINESE = re.compile(r"[一-鿿]")
_SENTENCE = re.compile(
    r"(?i)\b(?:will|can|could|would|does|do|is|are|am|how|what|which|enough|fits?|on|with|runs?|running|needs?|memory|vram|gpus?|cards?"
    r"|train\w*|fine-?tun\w*|serv(?:e|ing)|deploy\w*|host)\b|\?"
)
"""Words that stand in no name of a model."""
_SERVERS = ("vllm", "sglang", "lmdeploy", "text-generation-inference", "tensorrt-llm", "ollama", "llama.cpp")
_TRAINS = (
    r"(?i)\b(?:pre-?|re-?)?(?:train\w*|fine-?tun\w*|tun(?:e|ing)|sft|dpo|grpo|ppo|q?-?lora|dora|full[ -]?ft)\b|full fine[ -]?tun"
    r"|微调|训练|全参|全量"
)
_WAY = re.compile(r"(?i)(?<![a-z])(dpo|kto|orpo|grpo|ppo)(?![a-z])")
_BY_FORMAT: Mapping[str, str] = {"llama.cpp": r"(?i)\bgguf\b", "transformers": r"(?i)\bpeft\b"}
"""What is asked about files or a library that name no program means this one."""
_FORMAT = re.compile(r"(?i)\b(awq|gptq|fp8|nvfp4|mxfp4|int4|int8|i?q\d_[a-z0-9_]{1,4}|bf16|fp16)\b")
_FOUR_BITS = re.compile(r"(?i)\b4[- ]?bit\b|四比特|4 ?比特")


class WordedQuestion(Struct, frozen=True, kw_only=True):
    """What a question says; what it does not say is None."""

    model: str | None
    gpu: str | None
    gpus: int | None
    framework: str | None
    settings: RunSettings
    serves: bool
    """Whether it is about answering with the model: where nothing speaks of training."""


def is_question(text: str) -> bool:
    """Return whether a text is a sentence rather than the name of a model or of a file."""
    return _CHINESE.search(text) is not None or (len(text.split()) >= _FEWEST_WORDS and _SENTENCE.search(text) is not None)


def read_question(text: str) -> WordedQuestion:
    """Return what a sentence asks."""
    told = read_told(text)
    framework = program_in(text) or next((name for name, form in _BY_FORMAT.items() if re.search(form, text)), None)
    serves = framework in _SERVERS or not re.search(_TRAINS, text)
    return WordedQuestion(
        model=told.settings.model,
        gpu=told.card_name,
        gpus=told.cards if told.cards > 1 else None,
        framework=framework,
        settings=_served(told.settings, text) if serves else _trained(told.settings, text),
        serves=serves,
    )


def _served(settings: RunSettings, text: str) -> RunSettings:
    form = _FORMAT.search(text)
    quantization = form[1].lower() if form else "awq" if _FOUR_BITS.search(text) else None
    named = quantization is not None and quantization in (settings.model or "").lower()
    return replace(
        settings,
        method="serve",
        finetuning=None,
        lora_rank=None,
        optimizer=None,
        packing=None,
        micro_batch=None,
        max_model_len=settings.sequence_length,
        sequence_length=None,
        quantization=None if named else quantization,
    )


def _trained(settings: RunSettings, text: str) -> RunSettings:
    ways = {way.lower() for way in _WAY.findall(text)}
    return replace(settings, method=ways.pop() if len(ways) == 1 else None)
