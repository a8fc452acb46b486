"""A run described by a log and configs: which model it is, and its settings as supplemented by the log.

A log rarely names the model, but it prints the number of parameters; no two families of models have the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.event import Value
from oomdoctor.case.settings import RunConfig, RunSettings
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config, unusable_sizes
from oomdoctor.knowledge.hub_configs.sizes import HubConfig
from oomdoctor.knowledge.tables.shapes import counted_shape, model_shape
from oomdoctor.setups import prompts
from oomdoctor.setups.from_settings import NO_VERSIONS, setup_from_settings
from oomdoctor.setups.nearest_model import nearest_model, size_in

_SAME = 1e-5
"""Counts that differ by less belong to one model: buffers and biases of a vision tower may or may not be counted."""
_UNGATED, _STEP = "gpt2", 64
"""A gated MLP is two thirds of four times the model's width, in steps of 64: megatron/training/arguments.py:1287 of core_v0.19.0."""
_FEW = 0.5
"""A run that trains a smaller share of the parameters trains adapters, or some of the layers."""
_OF_EXPERTS = re.compile(r"(?i)a\d{1,3}(?:\.\d)?b|\dx\d|moe")
_PACKED = re.compile(r"(?i)int-?[48]|[48]-?bit|fp8|awq|gptq|nf4")
"""Indicates in a model's name that its weights are packed."""
_CARDS = ("world_size", "num_processes", "nproc_per_node", "num_gpus")


class LoggedRun(Struct, frozen=True, kw_only=True):
    """What is known about a run, as far as memory is concerned."""

    shape: Shape | None
    settings: RunSettings
    framework: str | None
    cards: int
    trained: int | None
    """Trained parameters, as the log counts them."""
    transformers: str | None = None
    """The version."""
    versions: Mapping[str, str] = NO_VERSIONS
    """The versions printed in the log, by framework."""

    @property
    def is_told(self) -> bool:
        """Whether model, method, batch and length are known, so that an estimate relies on stated values and not on defaults."""
        return bool(self.shape and self.settings.finetuning and self.settings.micro_batch and self.settings.sequence_length)


def run_from_log(training: RunConfig | None, log: Mapping[str, Value]) -> LoggedRun:
    """Return the run described by settings and the facts of a log (`log.NAME`)."""
    settings = training.settings if training else RunSettings()
    trained, everything = _number(log, "trainable_params"), _number(log, "all_params")
    if settings.finetuning is None and trained and everything:
        settings = replace(settings, finetuning="lora" if trained < _FEW * everything else "full")
    named = settings.model or log.get("log.model_name_or_path")
    if settings.load_bits is None and (packed := _PACKED.search(str(named or ""))) is not None:
        settings = replace(settings, load_bits=8 if "8" in packed[0] else 4)
    framework = training.framework if training and training.framework else log.get("log.framework")
    cards = settings.world_size or next((count for name in _CARDS if (count := _number(log, name))), None) or _visible(settings)
    return LoggedRun(
        shape=_counted(everything, trained) or (_named(str(named), is_stated=_is_stated(training)) if named else sized_model(settings)),
        settings=settings,
        framework=str(framework) if framework else None,
        cards=cards if cards and cards > 0 else 1,
        trained=trained,
        versions=_versions(training, log),
        transformers=str(log["log.transformers_version"]) if log.get("log.transformers_version") else None,
    )


def setup_from_log(known: LoggedRun, model: Shape) -> tuple[Setup, tuple[Assumption, ...]]:
    """Return the setup of a run with this model."""
    made, assumptions = setup_from_settings(known.settings, model, known.framework, known.cards, known.versions)
    if made.adapters is not None and known.trained is not None:
        made = replace(made, adapters=replace(made.adapters, count=known.trained))
        assumptions = tuple(taken for taken in assumptions if taken.id != "lora_rank")
    return replace(made, prompt_logits=prompts.has_all_logits(known.transformers)), assumptions


def sized_model(settings: RunSettings) -> Shape | None:
    """Return the model whose sizes a config gives instead of a name; None if they are incomplete."""
    config = sizes_said(settings)
    return shape_from_config(config, f"{config['num_hidden_layers']} x {config.get('hidden_size')}") if config else None


def which_model(settings: RunSettings) -> str:
    """Return the one-line question to ask if no model is named: with the missing sizes, if a config gives others."""
    lacking = unusable_sizes(sizes_said(settings)) if settings.model_sizes else ()
    some = f"; its config gives sizes, but no {', '.join(lacking)}" if lacking else ""
    return f"which model? specify it with --model, or give a folder or file with its config.json{some}"


def sizes_said(settings: RunSettings) -> HubConfig:
    """Return the sizes that a config gives instead of a name, as a config.json; empty if it gives none."""
    config = json.loads(settings.model_sizes or "{}")
    words, hidden = model_shape(str(config.pop("vocabulary_of", ""))), config.get("hidden_size")
    assumed = {} if words is None else {"vocab_size": words.vocab}
    if isinstance(hidden, int):
        assumed["intermediate_size"] = 4 * hidden if config.get("model_type") == _UNGATED else int(4 * hidden * 2 / 3 / _STEP) * _STEP
    return {**assumed, **config}


def _is_stated(training: RunConfig | None) -> bool:
    return training is not None and "model" in training.stated


def _named(name: str, *, is_stated: bool) -> Shape | None:
    """Return the model with a name; `8B` alone means a model of that size. The experts of one are not such a size."""
    shape, size = model_shape(name), size_in(name) if is_stated else None
    return shape or (nearest_model(size, name) if size is not None and not _OF_EXPERTS.search(name) else None)


def _counted(everything: int | None, trained: int | None) -> Shape | None:
    """Return the model with this many parameters, with or without the adapters on it."""
    return None if everything is None else counted_shape([everything, everything - (trained or 0)], _SAME)


def _versions(training: RunConfig | None, log: Mapping[str, Value]) -> dict[str, str]:
    facts = ((name.removeprefix("log.").removesuffix("_version"), value) for name, value in log.items() if name.endswith("_version"))
    printed = {name.replace("_", "-"): str(value) for name, value in facts if value}
    if training is None or training.framework is None or training.version is None:
        return printed
    return {**printed, training.framework: training.version}


def _visible(settings: RunSettings) -> int | None:
    """Return the GPUs that a sharded run may use: sharding starts a process on each of them."""
    listed = str(settings.visible_devices or "").split(",")
    spreads = bool(settings.zero_stage or settings.fsdp)
    return len(listed) if spreads and len(listed) > 1 and all(each.strip().isdigit() for each in listed) else None


def _number(log: Mapping[str, Value], name: str) -> int | None:
    """Return a whole number as logs print it (`9,402,736,640`)."""
    text = str(log.get(f"log.{name}", "")).replace(",", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
