"""The shapes of well-known models, by the names that people give them: hub names, local folders, quantised copies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from math import log

from msgspec import Raw, Struct
from msgspec.json import decode
from msgspec.structs import replace

from oomdoctor.knowledge.hub_configs.sizes import HubConfig
from oomdoctor.knowledge.pack import builtin_rules
from oomdoctor.knowledge.tables.likeness import likeness
from oomdoctor.knowledge.tables.model_names import ModelName, is_ollama_tag, last_part, read_known_name, read_model_name, without_maker
from oomdoctor.knowledge.tables.name_words import name_words

_ROUNDED = 0.08
"""A size in a name differs from the number of parameters by less: `phi-4 14b` has 14.7."""
_MIDDLE = 8e9
"""Parameters of the models that most people mean where a name says no size."""
_AT_SIZE = 0.25
"""What the same size counts for, and the whole family at the beginning, beside how like two names are."""
_LIKE = 0.34
_DISTILLED = "distill"
_BEGINS = 2
"""Letters of a family that are looked for in a name before it is read."""
_SEPARATORS = str.maketrans("", "", "-_ .:/")


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
    called: tuple[str, ...] = ()
    """Other names that people use for it; a tag of Ollama's library counts for tags alone."""
    config: HubConfig | None = None
    """What the model's config.json says of sizes and formats, in its own words; then the keys below are not there."""
    parts: Mapping[str, HubConfig] = {}
    """Of what makes pictures the config.json of each folder that holds weights; nothing else stands in such a row."""
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
    if "/" in name and (whole := _whole_names().get(name.lower())):
        return _row(whole)
    return next((row for written in _readings(name) if (row := _meant(written)) is not None), None)


def model_choices(name: str, most: int = 3) -> list[str]:
    """Return the models that somebody may have meant by a name that is not known, the likeliest first, each size once."""
    written, spelled = next(_readings(name)), last_part(name).lower()
    marked: dict[tuple[str, str, str], tuple[float, float, str]] = {}
    for entry in _entries():
        known = entry.name
        like = max(likeness(written.family, known.family), likeness(spelled, last_part(entry.row.name).lower()))
        if known.format or like < _LIKE:
            continue
        is_at_size = bool(written.size) and _has_size(written, entry)
        is_begun = bool(written.family) and known.family.startswith(written.family)
        mark = (-like - _AT_SIZE * (is_at_size + is_begun), _away(entry.row, written.billions), entry.row.name)
        place = (known.family, known.size, known.active)
        marked[place] = min(mark, marked.get(place, mark))
    return [name for _, _, name in sorted(marked.values())][:most]


def _away(row: ModelRow, billions: float | None) -> float:
    """Return how far a model is from a written size, else from the usual one."""
    params = row.params_total_published or row.params_total_formula or 1
    return abs(log(params / (billions * 1e9 if billions else _MIDDLE)))


def model_rows() -> tuple[ModelRow, ...]:
    """Return every model of the table once."""
    return tuple(map(_row, _table()))


class _Entry(Struct, frozen=True):
    """A name of a model in parts, and the row that it is a name of."""

    name: ModelName
    key: str

    @property
    def row(self) -> ModelRow:
        """The row, which is read only where it is asked for."""
        return _row(self.key)


class _RowNames(Struct, frozen=True):
    """What of a row says how the model is called."""

    called: tuple[str, ...] = ()


def _readings(name: str) -> Iterator[ModelName]:
    """Yield what a name may say, with Ollama's own names by those of the models."""
    for reading in read_model_name(name):
        tagged = _tags().get((reading.family, reading.size)) if is_ollama_tag(name) else None
        yield tagged.name if tagged else reading


def _meant(written: ModelName) -> ModelRow | None:
    """Return the row that a name means: by family and size, else by one of them where only one model has it."""
    if not written.family:
        return None
    entries = [entry for entry in _spelled_like(written.family[:_BEGINS]) if entry.name.family == written.family]
    of_size = [entry for entry in entries if _has_size(written, entry)]
    named_so = [entry for entry in of_size if entry.name.size == written.size]
    if row := _chosen(written, named_so if written.size and named_so else of_size):
        return row
    short = [entry for entry in _entries() if entry.name.size == written.size and _is_short_for(written, entry.name)]
    if entries and not (of_size or short) and (tagged := _tags().get((written.family, written.size))):
        return tagged.row  # `DeepSeek R1 32B`: in that size there are only models that Ollama calls so
    return _chosen(written, short)


def _is_short_for(written: ModelName, known: ModelName) -> bool:
    """Return whether a name is that of a model without its maker, and where it says a size, its version or what it was distilled into.

    A version alone (`V2`) is no name. What a model is for is one with a size (`Reranker-0.6B`).
    """
    if not any(letter.isalpha() for letter in written.family):
        return False
    if without_maker(known.family) == written.family:
        return True
    without_version = written.is_without_version and known.family.rstrip("0123456789") == written.family
    without_student = written.family.endswith(_DISTILLED) and known.family.startswith(written.family)
    is_its_end = written.family in name_words("model", "role") or written.family.startswith(_DISTILLED)
    without_family = is_its_end and known.family.endswith(written.family)
    return bool(written.size) and (without_version or without_student or without_family)


def _has_size(written: ModelName, entry: _Entry) -> bool:
    """Return whether a model is as large as a name says, or the name does not say it."""
    if written.active and entry.name.active and written.active != entry.name.active:
        return False
    if not written.size or written.size == entry.name.size:
        return True
    if written.billions is None or (entry.name.size and not entry.name.counts_experts):
        return False
    billions = (entry.row.params_total_published or entry.row.params_total_formula) / 1e9
    return abs(billions - written.billions) <= _ROUNDED * billions


def _chosen(written: ModelName, entries: list[_Entry]) -> ModelRow | None:
    """Return the row that agrees best; None where there is none, or the name leaves open which of several shapes is meant.

    Rows of one family and size differ in little (Mistral 7B v0.1 to v0.3); of others any difference is one too many. A release
    of another date is another model.
    """
    entries = [entry for entry in entries if not (written.dates and entry.name.dates and written.dates.isdisjoint(entry.name.dates))]
    names = {(entry.name.family, entry.name.size, entry.name.active) for entry in entries}
    if not entries or (len(names) > 1 and len({_dimensions(entry.row) for entry in entries}) > 1):
        return None
    return max(entries, key=lambda entry: _agreement(written, entry.name)).row


def _agreement(written: ModelName, known: ModelName) -> tuple[int, int, bool, str]:
    """Return how well two names agree: in the format (a row without one is that of all), in the words beside, else the newer release."""
    same_format = 2 if written.format[:3] == known.format[:3] else 0 if known.format else 1
    release = max((word for word in known.beside if word.startswith("v") or word in known.dates), default="")
    return (same_format, len(set(written.beside) & set(known.beside)), not known.dates, release)


def _dimensions(row: ModelRow) -> tuple[object, ...]:
    if row.config is None:
        return (row.hidden_size, row.num_layers, row.vocab_size, row.intermediate_size)
    config = row.config.get("text_config", row.config)
    return tuple(config.get(key) for key in ("hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"))


@cache
def _entries() -> list[_Entry]:
    return [_Entry(next(iter(read_known_name(name))), name) for name in _table()]


@cache
def _tags() -> Mapping[tuple[str, str], _Entry]:
    """Return the models by the names that only Ollama's library has for them."""
    tags = [(next(iter(read_known_name(tag))), name) for name, called in _called().items() for tag in called if is_ollama_tag(tag)]
    return {(tag.family, tag.size): _Entry(next(iter(read_known_name(name))), name) for tag, name in tags}


@lru_cache(maxsize=64)
def _spelled_like(begins: str) -> list[_Entry]:
    """Return the names that may be of a family by the letters that it begins with, anywhere in them; the others are not read."""
    known = [(spelling, name) for squeezed, spelling, name in _spellings() if begins in squeezed]
    return [_Entry(reading, name) for spelling, name in known for reading in read_known_name(spelling)]


@cache
def _spellings() -> list[tuple[str, str, str]]:
    """Return every name of every model: its letters alone, as it is written, and the row."""
    known = [(spelling, name) for name, called in _called().items() for spelling in (name, *called) if not is_ollama_tag(spelling)]
    return [(spelling.lower().translate(_SEPARATORS), spelling, name) for spelling, name in known]


@cache
def _whole_names() -> Mapping[str, str]:
    """Return the rows by the names on a hub, owner and all: an owner's name may say what the model's own does not."""
    return {spelling.lower(): name for name, called in _called().items() for spelling in (name, *called) if "/" in spelling}


@cache
def _called() -> Mapping[str, tuple[str, ...]]:
    return {name: decode(row, type=_RowNames).called for name, row in _table().items()}


@cache
def _row(name: str) -> ModelRow:
    row = decode(_table()[name], type=ModelRow)
    return replace(_row(row.like) if row.like else row, name=name, called=row.called)


@cache
def _table() -> Mapping[str, Raw]:
    with open(os.path.join(builtin_rules(), "tables", "models.json"), "rb") as file:
        return decode(file.read(), type=dict[str, Raw])
