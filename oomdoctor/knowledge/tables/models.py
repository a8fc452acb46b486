"""The shapes of well-known models, by the names that people give them: hub names, local folders, quantised copies."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from oomdoctor.knowledge.pack import builtin_rules

_SUFFIX = re.compile(
    r"[-_.](?:instruct|chat|base|hf|it|pt|gptq|awq|bnb|gguf|int[48]|[48]bit|fp16|bf16|fp8|unsloth|v\d(?:\.\d)?|\d{1,4}k|1m|\d{4}|thinking|reasoning"
    r"|coder|math|python|preview|lora|sft|dpo|merged)$"
)
# Hub caches: models--ORG--NAME/snapshots/HASH
_CACHED = re.compile(r"models--[\w.-]{1,100}--([\w.-]{1,100})")
_VARIANT = re.compile(r"-(?:coder|math)(?=-)")
_LONGEST = 300


class LatentRow(Struct, frozen=True):
    """Multi-head latent attention, by the keys of DeepSeek's configs."""

    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None = None


class TowerRow(Struct, frozen=True):
    """The tower that reads images."""

    kind: str = ""
    hidden_size: int = 0
    num_layers: int = 0
    num_heads: int = 0
    intermediate_size: int = 0
    gated_mlp: bool = False
    params: int = 0
    patches: int = 0
    patches_plus_cls: int | None = None
    tokens_per_image: int | str = 0
    """A text where it depends on the image."""


class ModelRow(Struct, frozen=True, kw_only=True):
    """One model of the table, by the keys of the file; see its shape for what they mean."""

    name: str = ""
    """The key of the row."""
    like: str = ""
    """The row of a model with the same sizes; nothing else stands in such a row."""
    config: dict[str, Any] | None = None
    """What the model's config.json says of sizes and formats, in its own words; then the keys below are not there."""
    hidden_size: int = 0
    num_layers: int = 0
    num_heads: int = 0
    num_kv_heads: int = 0
    head_dim: int = 0
    intermediate_size: int = 0
    vocab_size: int = 0
    tied_embeddings: bool = False
    norm: str = ""
    gated_mlp: bool = False
    attn_bias: bool = False
    mlp_bias: bool = False
    lm_head_bias: bool = False
    fused_qkv: bool = False
    fused_gate: bool = False
    activation: str = ""
    qk_norm: bool | str = False
    """`full` is a norm over all heads."""
    sandwich_norm: bool = False
    post_norm: bool = False
    shared_norm: bool = False
    parallel_residual: bool = False
    wide_norm: bool = False
    rotary: bool = True
    eager_only: bool = False
    residual_dropout: bool = False
    learned_positions: int = 0
    extra_params: int = 0
    sliding_window: int | None = None
    windowed_layers: int | None = None
    n_experts: int = 0
    experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    n_shared_experts: int = 0
    shared_gate: bool = False
    first_k_dense: int = 0
    correction_bias: bool = False
    mla: LatentRow | None = None
    vision: TowerRow | None = None
    params_vision_formula: int | None = None
    params_total_formula: int = 0
    params_total_published: int | None = None


def model_row(name: str) -> ModelRow | None:
    """Return what `rules/tables/models.json` knows of a model; None for a name that it does not know.

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


def model_rows() -> tuple[ModelRow, ...]:
    """Return every model of the table once."""
    return tuple({row.name: row for row in _table().values()}.values())


def _short(name: str) -> str:
    name = name[-_LONGEST:].rstrip("/\\")
    cached = _CACHED.search(name) if "models--" in name else None
    last = cached[1] if cached else name.replace("\\", "/").rpartition("/")[2]
    return _VARIANT.sub("", last.replace("___", ".").lower().removeprefix("meta-"))


@cache
def _table() -> Mapping[str, ModelRow]:
    with open(os.path.join(builtin_rules(), "tables", "models.json"), "rb") as file:
        models = decode(file.read(), type=dict[str, ModelRow])
    out: dict[str, ModelRow] = {}
    for name, row in models.items():
        short = _short(name)
        row = replace(models[row.like] if row.like else row, name=name)
        while short not in out:
            out[short] = row
            short = _SUFFIX.sub("", short)
    return out
