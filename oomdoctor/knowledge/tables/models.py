"""The shapes of well-known models, by the names that people give them: hub names, local folders, quantised copies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from oomdoctor.knowledge.hub_configs.sizes import HubConfig
from oomdoctor.knowledge.pack import builtin_rules
from oomdoctor.knowledge.tables.likeness import nearest
from oomdoctor.knowledge.tables.model_names import ModelName, is_ollama_tag, last_part, read_model_name

_ROUNDED = 0.08
"""A size in a name differs from the number of parameters by less: `phi-4 14b` has 14.7."""
_LEAST = 6
"""Letters of a name that may stand without the maker's word before it (`R1-Distill-Llama-8B`)."""


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
    config: HubConfig | None = None
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
    max_position_embeddings: int | None = None
    """Also of the chat models that share the row; none where they differ."""
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
    """Return what `rules/tables/models.json` knows of a model; None for a name that it does not know, or that several models have.

    `name` is what configs and people write: `Qwen/Qwen2.5-7B-Instruct`, `/data/models/Qwen2___5-7B`, `qwen2.5:7b`, a GGUF file.
    """
    return next((row for written in _readings(name) if (row := _meant(written)) is not None), None)


def model_choices(name: str, most: int = 3) -> list[str]:
    """Return the models that somebody may have meant by a name that is not known, the likeliest first."""
    written, spelled = _readings(name)[0], last_part(name).lower()
    entries = [entry for entry in _entries() if not entry.name.format]
    family = written.family.rstrip("0123456789")
    same = [entry for entry in entries if family and entry.name.family.startswith(family)]
    at_size = [entry for entry in same if written.size and entry.name.size == written.size]
    known = dict.fromkeys(entry.row.name for entry in (*at_size, *same))
    near = nearest(spelled, known or [entry.row.name for entry in entries], most, spelled=lambda known: last_part(known).lower())
    return list(dict.fromkeys((*(name for name in known if name in {entry.row.name for entry in at_size}), *near)))[:most]


def model_rows() -> tuple[ModelRow, ...]:
    """Return every model of the table once."""
    return tuple(_table().values())


class _Entry(Struct, frozen=True):
    """A row with its name in parts."""

    name: ModelName
    row: ModelRow


def _readings(name: str) -> list[ModelName]:
    """Return what a name may say, with Ollama's own names by those of the models."""
    readings = list(read_model_name(name))
    if is_ollama_tag(name):
        readings = [_OLLAMA.get((reading.family, reading.size), reading) for reading in readings]
    return readings


_OLLAMA = {
    ("deepseekr1", size): ModelName(f"deepseekr1distill{base}", size)
    for base, sizes in (("qwen", ("1.5", "7", "14", "32")), ("llama", ("70",)))
    for size in sizes
} | {("deepseekr1", "8"): ModelName("qwen3", "8")}
"""https://ollama.com/library/deepseek-r1/tags: the small ones are the distilled models, that of 8B is DeepSeek-R1-0528-Qwen3-8B."""


def _meant(written: ModelName) -> ModelRow | None:
    """Return the row that a name means: by family and size, else by one of them where only one model has it."""
    if not written.family:
        return None
    entries = _by_family().get(written.family, [])
    if row := _chosen(written, [entry for entry in entries if _has_size(written, entry)]):
        return row
    if not written.size:
        return None
    if written.is_without_version:
        near = [entry for entry in _entries() if entry.name.family.rstrip("0123456789") == written.family]
    else:
        is_long = len(written.family) >= _LEAST
        near = [entry for entry in _entries() if is_long and entry.name.family.endswith(written.family)]
    return _chosen(written, [entry for entry in near if entry.name.size == written.size])


def _has_size(written: ModelName, entry: _Entry) -> bool:
    """Return whether a model is as large as a name says, or the name does not say it."""
    if written.active and entry.name.active and written.active != entry.name.active:
        return False
    if not written.size or written.size == entry.name.size:
        return True
    if written.billions is None or (entry.name.size and not entry.name.beside):
        return False
    billions = (entry.row.params_total_published or entry.row.params_total_formula) / 1e9
    return abs(billions - written.billions) <= _ROUNDED * billions


def _chosen(written: ModelName, entries: list[_Entry]) -> ModelRow | None:
    """Return the row that agrees best; None where there is none, or the name leaves open which of several shapes is meant.

    Rows of one family and size differ in little (Mistral 7B v0.1 to v0.3); of others any difference is one too many.
    """
    names = {(entry.name.family, entry.name.size, entry.name.active) for entry in entries}
    if not entries or (len(names) > 1 and len({_dimensions(entry.row) for entry in entries}) > 1):
        return None
    return max(entries, key=lambda entry: _agreement(written, entry.name)).row


def _agreement(written: ModelName, known: ModelName) -> tuple[int, int, str]:
    """Return how well two names agree: in the format (a row without one is that of all), in the words beside, else the newer version."""
    same_format = 2 if written.format[:3] == known.format[:3] else 0 if known.format else 1
    version = max((word for word in known.beside if word.startswith("v")), default="")
    return (same_format, len(set(written.beside) & set(known.beside)), version)


def _dimensions(row: ModelRow) -> tuple[object, ...]:
    if row.config is None:
        return (row.hidden_size, row.num_layers, row.vocab_size, row.intermediate_size)
    config = row.config.get("text_config", row.config)
    return tuple(config.get(key) for key in ("hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"))


@cache
def _entries() -> list[_Entry]:
    return [_Entry(next(iter(read_model_name(name))), row) for name, row in _table().items()]


@cache
def _by_family() -> Mapping[str, list[_Entry]]:
    families: dict[str, list[_Entry]] = {}
    for name, row in _table().items():
        for reading in read_model_name(name):
            families.setdefault(reading.family, []).append(_Entry(reading, row))
    return families


@cache
def _table() -> Mapping[str, ModelRow]:
    with open(os.path.join(builtin_rules(), "tables", "models.json"), "rb") as file:
        models = decode(file.read(), type=dict[str, ModelRow])
    return {name: replace(models[row.like] if row.like else row, name=name) for name, row in models.items()}
