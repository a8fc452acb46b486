"""A question in words ("will Qwen3-32B QLoRA fit on a 4090?"): the run, the program and the GPUs it mentions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings
from oomdoctor.knowledge.tables.models import model_row
from oomdoctor.knowledge.tables.stated_words import program_in
from oomdoctor.setups.words.told import read_told

_FEWEST_WORDS = 4
_CHINESE = re.compile(r"[一-鿿]")
_SENTENCE = re.compile(
    r"(?i)\b(?:will|can|could|would|does|do|is|are|am|how|what|which|enough|fits?|on|with|runs?|running|needs?|memory|vram|gpus?|cards?"
    r"|train\w*|fine-?tun\w*|serv(?:e|ing)|deploy\w*|host)\b|\?"
)
"""Words that are not in any model name."""
_SERVERS = ("vllm", "sglang", "lmdeploy", "text-generation-inference", "tensorrt-llm", "ollama", "llama.cpp")
_TRAINS = (
    r"(?i)\b(?:pre-?|re-?)?(?:train\w*|fine-?tun\w*|tun(?:e|ing)|sft|dpo|grpo|ppo|q?-?lora|dora|full[ -]?ft)\b|full fine[ -]?tun"
    r"|微调|训练|全参|全量"
)
_OFFLOADS = re.compile(r"(?i)\boff-?load|卸载到")
_WAY = re.compile(r"(?i)(?<![a-z])(dpo|kto|orpo|grpo|ppo)(?![a-z])")
_SCORERS: Mapping[str, str] = {"reranker": r"(?i)rerank|cross-?encoder|重排", "embedding": r"(?i)\bembedd?ing|向量模型|嵌入模型"}
_BY_FORMAT: Mapping[str, str] = {"llama.cpp": r"(?i)\bgguf\b", "transformers": r"(?i)\bpeft\b"}
"""A question about files or a library that names no program means this one."""
_CACHE_TYPE = re.compile(
    r"(?i)\b(?:kv[ _-]?cache|OLLAMA_KV_CACHE_TYPE)\b[^\n.?]{0,12}?\b(q8_0|q4_0|fp8|f16)\b|\b(q8_0|q4_0|fp8) kv[ _-]?cache\b"
)
_FORMAT = re.compile(r"(?i)\b(awq|gptq|fp8|nvfp4|mxfp4|int4|int8|i?q\d_[a-z0-9_]{1,4}|bf16|fp16)\b")
_FOUR_BITS = re.compile(r"(?i)\b4[- ]?bit\b|四比特|4 ?比特")


_BARE_SIZE = re.compile(
    r"(?i)(?:\b(?:on|in|with|have|fits?)\s+(?:an?\s+|my\s+|only\s+|just\s+)?|[用在有]\s?|^|[，,]\s?)(\d{1,3}) ?GB?(?![A-Za-z])"
)
"""The size of a GPU if nothing else names one: `fit on 12 GB`."""
_PIXELS = re.compile(
    r"(?i)(?<![\d.])(\d{3,4}) ?[x×*] ?(\d{3,4})(?!\d)|(?<![\d.])(480|540|720|1080)p\b|(?<![\d.])(\d{3,4}) ?(?:px|pixels?|像素)"
)
_WIDE: Mapping[str, int] = {"480": 832, "540": 960, "720": 1280, "1080": 1920}
"""Video width in pixels, by height: Wan's own sizes for 480p."""
_FRAMES = re.compile(r"(?i)(\d{1,4}) ?(?:frames?\b|帧)")
_MOST_WORDS = 5


class WordedQuestion(Struct, frozen=True, kw_only=True):
    """The contents of a question; what it does not say is None."""

    model: str | None
    gpu: str | None
    gpus: int | None
    framework: str | None
    settings: RunSettings
    serves: bool
    """Whether it is about inference with the model: nothing mentions training."""


def is_question(text: str) -> bool:
    """Return whether a text is a sentence rather than the name of a model or of a file."""
    return _CHINESE.search(text) is not None or (len(text.split()) >= _FEWEST_WORDS and _SENTENCE.search(text) is not None)


def read_question(text: str) -> WordedQuestion:
    """Return what a sentence asks."""
    told = read_told(text)
    gpu = told.card_name or (f"{size[1]}GB" if (size := _BARE_SIZE.search(text)) is not None else None)
    if (pictures := said_pictures(text)) is not None:
        return _of_pictures(pictures, told.settings, text, gpu, told.cards)
    framework = program_in(text) or next((name for name, form in _BY_FORMAT.items() if re.search(form, text)), None)
    serves = framework in _SERVERS or not re.search(_TRAINS, text)
    return WordedQuestion(
        model=told.settings.model or _named(text, pictures=False),
        gpu=gpu,
        gpus=told.cards if told.cards > 1 else None,
        framework=framework,
        settings=_served(told.settings, text) if serves else _trained(told.settings, text),
        serves=serves,
    )


def said_pictures(text: str) -> str | None:
    """Return the first name of an image generation pipeline in a text."""
    return _named(text, pictures=True)


def _named(text: str, *, pictures: bool) -> str | None:
    """Return the first name of a known model in a text, the longest that begins there: `whisper-large-v3` gives no size."""
    words = [word.strip(".,;:!?，。？！") for word in re.split(r"[\s，。？！、（）()的用]+", text)][:60]
    spans = ((first, last) for first in range(len(words)) for last in range(min(len(words), first + _MOST_WORDS), first, -1))
    names = (" ".join(words[first:last]) for first, last in spans)
    rows = (row for name in names if re.search(r"[A-Za-z]", name) and (row := model_row(name)) is not None)
    return next((row.name for row in rows if bool(row.parts) is pictures), None)


def _of_pictures(model: str, settings: RunSettings, text: str, gpu: str | None, cards: int) -> WordedQuestion:
    trains = re.search(_TRAINS, text) is not None
    pixels, frames, form = _PIXELS.search(text), _FRAMES.search(text), _FORMAT.search(text)
    width, height = _sides(pixels) if pixels is not None else (None, None)
    asked_for = replace(
        settings,
        model=model,
        method=None if trains else "generate",
        finetuning=settings.finetuning if trains else None,
        sequence_length=None,
        weight_format=form[1].lower() if form else "nf4" if _FOUR_BITS.search(text) else None,
        picture_width=width,
        picture_height=height,
        video_frames=int(frames[1]) if frames else None,
        offload_params="cpu" if _OFFLOADS.search(text) else None,
        offload_optimizer=None,
    )
    framework = program_in(text)
    return WordedQuestion(model=model, gpu=gpu, gpus=cards if cards > 1 else None, framework=framework, settings=asked_for, serves=False)


def _sides(pixels: re.Match[str]) -> tuple[int, int]:
    if pixels[3]:
        return _WIDE[pixels[3]], int(pixels[3])
    return (int(pixels[4]), int(pixels[4])) if pixels[4] else (int(pixels[1]), int(pixels[2]))


def _served(settings: RunSettings, text: str) -> RunSettings:
    cache = _CACHE_TYPE.search(text)
    form = _FORMAT.search(_CACHE_TYPE.sub(" ", text))
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
        kv_cache_dtype=(cache[1] or cache[2]).lower() if cache else None,
        quantization=None if named else quantization,
    )


def _trained(settings: RunSettings, text: str) -> RunSettings:
    ways = {way.lower() for way in _WAY.findall(text)}
    scorer = next((way for way, form in _SCORERS.items() if re.search(form, text)), None)
    return replace(settings, method=ways.pop() if len(ways) == 1 else scorer)
