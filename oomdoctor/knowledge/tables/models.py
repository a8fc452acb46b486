"""The shapes of well-known models, by the names that people give them: hub names, local folders, quantised copies."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec.json import decode

from oomdoctor.knowledge.pack import builtin_rules

_SUFFIX = re.compile(
    r"[-_.](?:instruct|chat|base|hf|it|pt|gptq|awq|bnb|gguf|int[48]|[48]bit|fp16|bf16|fp8|unsloth|v\d(?:\.\d)?|\d{1,4}k|1m|\d{4}|thinking|reasoning"
    r"|coder|math|python|preview|lora|sft|dpo|merged)$"
)
# Hub caches: models--ORG--NAME/snapshots/HASH
_CACHED = re.compile(r"models--[\w.-]{1,100}--([\w.-]{1,100})")
_VARIANT = re.compile(r"-(?:coder|math)(?=-)")
_LONGEST = 300


def model_row(name: str) -> Mapping[str, Any] | None:
    """What `rules/tables/models.json` knows of a model; None for a name that it does not know.

    `name` is what a config says: `Qwen/Qwen2.5-7B-Instruct`, `/data/models/Qwen2___5-7B` (ModelScope writes a dot so).
    """
    short = _short(name)
    known = _table()
    while short:
        if short in known:
            return known[short]
        shorter = _SUFFIX.sub("", short)
        if shorter == short:
            return None
        short = shorter
    return None


def model_rows() -> tuple[Mapping[str, Any], ...]:
    """Every model of the table once."""
    return tuple({facts["id"]: facts for facts in _table().values()}.values())


def _short(name: str) -> str:
    name = name[-_LONGEST:].rstrip("/\\")
    cached = _CACHED.search(name) if "models--" in name else None
    last = cached[1] if cached else name.replace("\\", "/").rpartition("/")[2]
    return _VARIANT.sub("", last.replace("___", ".").lower().removeprefix("meta-"))


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    with open(os.path.join(builtin_rules(), "tables", "models.json"), "rb") as file:
        models: dict[str, Mapping[str, Any]] = decode(file.read())
    out: dict[str, Mapping[str, Any]] = {}
    for name, facts in models.items():
        short = _short(name)
        facts = {"id": name, **facts}
        while short not in out:
            out[short] = facts
            short = _SUFFIX.sub("", short)
    return out
