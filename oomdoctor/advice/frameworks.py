"""Whose config a person edits in this run: the framework, and the layers below it that have files or variables of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomdoctor.findings.conditions import Fact, KnownFacts, evaluate
from oomdoctor.knowledge.records.fix import SettingRecord

_BASES: Mapping[str, tuple[str, ...]] = {"trl": ("transformers",), "unsloth": ("trl", "transformers")}
"""Frameworks whose settings another one takes as well; they are asked where it has none of its own."""
_SIGNS: Mapping[str, tuple[str, ...]] = {
    "deepspeed": ("training.zero_stage", "log.zero_stage", "log.deepspeed"),
    "fsdp": ("training.fsdp", "training.fsdp_version"),
    "accelerate": ("log.distributed_type",),
}
"""Layers that a run can have below its framework, with the facts that show it."""
_ALWAYS = ("environment", "pytorch")
_PROGRAMS: Mapping[str, str] = {
    "vllm": "vllm", "sglang": "sglang", "llama.cpp": "llama.cpp", "ollama": "ollama", "jax-xla": "jax", "tensorflow": "tensorflow",
    "ray": "ray", "paddle": "paddle", "mxnet": "mxnet", "theano": "theano", "mindspore": "mindspore", "oneflow": "oneflow",
    "megengine": "megengine", "nnabla": "nnabla", "catboost-lightgbm": "catboost-lightgbm",
}  # fmt: skip
"""Programs whose own message shows whose settings count, and the name of those."""
_NOTHING = ("", "none", "null", "false", "no")
_LIKELY = 2


def framework(known: KnownFacts) -> str | None:
    """The framework that runs; a layer only where nothing above it is known."""
    root = known.programs.get(known.roots[0].signature, "") if known.roots else ""
    facts = known.facts
    said = (facts.get("training.framework"), facts.get("log.framework"), _PROGRAMS.get(root), facts.get("incident.inference"))
    named = [str(one) for one in said if one]
    return next((one for one in named if one not in _SIGNS), named[0] if named else None)


def layers(facts: Mapping[str, Fact]) -> tuple[str, ...]:
    """The layers that this run has below its framework, as far as it shows them."""
    return tuple(layer for layer, signs in _SIGNS.items() if any(_says(facts.get(sign)) for sign in signs))


def meant(rows: Sequence[SettingRecord], known: KnownFacts, written: Mapping[str, str | None]) -> list[SettingRecord]:
    """The rows for this run; `written` says in whose config a setting stands.

    What the framework itself sets is not shown once more for a layer below it, unless it is written there. With the framework
    unknown the two that people use most are shown, never all of them.
    """
    named = list(dict.fromkeys(row.framework for row in rows))
    own = framework(known)
    first = [name for name in named if name not in _SIGNS and name not in _ALWAYS][:_LIKELY] if own is None else [_base(own, named)]
    tiers = [first, *([layer] for layer in (*layers(known.facts), *_ALWAYS) if layer not in first)]
    tier = {name: number for number, names in enumerate(tiers) for name in names}
    near = sorted((row for row in rows if row.framework in tier and _holds(row, known)), key=lambda row: tier[row.framework])
    chosen: dict[str, int] = {}
    for row in near:
        chosen.setdefault(_about(row), tier[row.framework])
        if written.get(_about(row)) == row.framework:
            chosen[_about(row)] = tier[row.framework]
    return [row for row in near if chosen[_about(row)] == tier[row.framework]]


def _base(own: str, named: Sequence[str]) -> str:
    """The framework itself where it has rows, else the one whose settings it takes."""
    return next((name for name in (own, *_BASES.get(own, ())) if name in named), own)


def _holds(row: SettingRecord, known: KnownFacts) -> bool:
    return row.when is None or bool(evaluate(row.when, known).truth)


def _about(row: SettingRecord) -> str:
    return row.sets or row.key


def _says(value: Fact) -> bool:
    return value is not None and str(value).strip().lower() not in _NOTHING
