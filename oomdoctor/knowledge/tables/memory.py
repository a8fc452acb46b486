"""The tables behind an estimate: formats of weights, optimizers, frameworks, and the names of what is trained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from msgspec import Struct
from msgspec.structs import asdict, replace

from oomdoctor.case.setup import FrameworkTraits, Optimizer, WeightFormat
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.records.framework import FrameworkRecord
from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.knowledge.tables.training_defaults import DefaultsQuery, default_value, defaults_version, framework_records

_UNKNOWN = "unknown"
_HALF = 2.0
_WORD = re.compile(r"[\w.-]{1,60}")


def weight_format(name: str) -> WeightFormat | None:
    """Return a format by any name that people give it; None for one that the table does not have."""
    return _formats().get(name.lower())


def weight_format_names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(_formats())


def known_format(name: str) -> WeightFormat:
    """Return a format that the table has for certain: one that another table names."""
    return _formats()[name]


@cache
def _formats() -> dict[str, WeightFormat]:
    return {
        name: WeightFormat(
            name=row["name"],
            bytes_per_param=float(row["bytes_per_param"]),
            packed=row["packed"] == "yes",
            packs_tower=row["packs_tower"] == "yes",
            unties=row["unties"] == "yes",
            unpacks=row["unpacks"] == "yes",
            rebuilds=row["rebuilds"] == "yes",
            keeps_unpacked=row["keeps_unpacked"] == "yes",
            source=row["source"],
        )
        for row in table("weight_formats")
        for name in _names(row)
    }


def cache_bytes(name: str | None, shape: Shape) -> float:
    """Return the bytes of a value in a server's cache of a type, with what each head of a token has beside them; 16 bit where unknown."""
    row = _cache_types().get((name or "").lower())
    return _HALF if row is None else float(row["bits"]) / 8 + float(row["per_head"]) / shape.head


@cache
def _cache_types() -> dict[str, Row]:
    return {name: row for row in table("cache_types") for name in _names(row)}


def optimizer_named(name: str) -> Optimizer | None:
    """Return an optimizer by any name that programs give it, or by its class (`torch.optim.AdamW`)."""
    return _optimizers().get(name.lower().rpartition(".")[2])


def optimizer_names() -> tuple[str, ...]:
    """Return every name of an optimizer."""
    return tuple(_optimizers())


def known_optimizer(name: str) -> Optimizer:
    """Return an optimizer that the table has for certain: one that another table names."""
    return _optimizers()[name]


@cache
def _optimizers() -> dict[str, Optimizer]:
    return {name: _optimizer(row) for row in table("optimizers") for name in _names(row)}


def _optimizer(row: Row) -> Optimizer:
    return Optimizer(
        name=row["name"],
        states=float(row["states"] or 0),
        bytes_per_param=float(row["bytes_per_param"]) if row["bytes_per_param"] else None,
        foreach_temporary=row["foreach"] == "yes",
        paged=row["paged"] == "yes",
        in_backward=row["in_backward"] == "yes",
        source=row["source"],
    )


class TrainingMethod(Struct, frozen=True):
    """What a way of training asks for beside the model."""

    sequences: int
    """Sequences that a sample brings."""
    reference: bool
    """Whether there is a second model to compare with."""
    scores: bool
    """Whether the loss asks for the scores of words."""
    critic: bool
    """Whether a second model is trained, which says what an answer is worth."""
    counted: bool
    """Whether the arithmetic has all of it: generated answers and reward models are not in it."""


def training_method(name: str) -> TrainingMethod:
    """Return a way of training by the name that configs have; any other compares nothing."""
    return _methods().get(name.lower()) or TrainingMethod(1, reference=False, scores=True, critic=False, counted=True)


@cache
def _methods() -> dict[str, TrainingMethod]:
    return {
        name: TrainingMethod(
            sequences=int(row["sequences"]),
            reference=row["reference"] == "yes",
            scores=row["scores"] == "yes",
            critic=row["critic"] == "yes",
            counted=row["counted"] == "yes",
        )
        for row in table("training_methods")
        for name in _names(row)
    }


@lru_cache(maxsize=1024)
def framework_traits(name: str | None, query: DefaultsQuery = DefaultsQuery()) -> FrameworkTraits:  # noqa: B008 - it is frozen
    """Return what is known of a framework in a run like that; of an unknown one what lies between the others."""
    record = _trained().get((name or _UNKNOWN).lower()) or _trained()[_UNKNOWN]
    origin = framework_records().get(record.trains_like or record.framework, record)
    if origin.training is None:
        return framework_traits(None, query)
    if query.whole is None:
        query = replace(query, whole=origin.training.finetuning == "full")
    named = record if record.defaults is not None and record.layer is None else origin
    traits = FrameworkTraits(name=named.framework, title=named.title, version=defaults_version(named, query), **asdict(origin.training))
    values = {field: value for field in _DEFAULTS if (value := default_value(record, field, query)) is not None}
    if (checkpointing := default_value(record, "checkpointing", query)) is not None:
        values |= {"checkpointing": checkpointing != "none", "selective": checkpointing == "selective"}
    if (adapters := default_value(record, "adapter_weights", query)) is not None:
        values["adapter_bytes"] = int(known_format(str(adapters)).bytes_per_param)
    if values.get("wide_experts") and _BELOW in dict(query.versions):
        # A release of the framework only tells which releases of it the framework takes.
        values["wide_experts"] = default_value(framework_records()[_BELOW], "wide_experts", query) is True
    return replace(traits, **values)


_BELOW = "transformers"
"""What holds the models of most trainers."""
_DEFAULTS = (
    "full_weights", "frozen_weights", "lora_rank", "lora_targets", "upcasts", "wide_ends", "wide_experts", "wide_gradients", "fused_loss",
    "optimizer", "batch", "length",
)  # fmt: skip
"""The defaults by version that are traits as they stand."""


@cache
def _trained() -> dict[str, FrameworkRecord]:
    """Return the frameworks that train, by every name."""
    records = framework_records()
    trains = [record for record in records.values() if record.training is not None or record.trains_like is not None]
    return {name: record for record in trains for name in (record.framework, *record.names)}


class ActivationFunction(Struct, frozen=True):
    """What a function inside an MLP keeps for the backward pass, in bytes for each element."""

    inside: int
    """Its input and what it makes on the way."""
    inside_autocast: int
    keeps_output: bool
    """Whether it needs what it gives, whether or not the next matrix does."""


def activation_function(name: str) -> ActivationFunction:
    """Return a function by the name that configs have; one that the table does not have is taken for a fused one."""
    return _activations().get(name) or _activations()["silu"]


@cache
def _activations() -> dict[str, ActivationFunction]:
    return {
        name: ActivationFunction(int(row["inside"]), int(row["inside_autocast"]), row["keeps_output"] == "yes")
        for row in table("activation_functions")
        for name in row["names"].split("|")
    }


def _names(row: Row) -> Iterator[str]:
    yield row["name"]
    yield from filter(None, row["names"].split("|"))


def adapter_targets(written: str) -> frozenset[str]:
    """Return the matrices that a list of module names means (`q_proj,v_proj`, `all-linear`); empty where no name is known."""
    known = _targets()
    return frozenset(target for word in _WORD.findall(written.lower()) for target in known.get(word, ()))


def target_names() -> tuple[str, ...]:
    """Return the names of layers that adapters can stand beside."""
    return tuple(_targets())


@cache
def _targets() -> dict[str, tuple[str, ...]]:
    return {name: tuple(row["targets"].split()) for row in table("trained_modules") for name in row["written"].split("|")}
