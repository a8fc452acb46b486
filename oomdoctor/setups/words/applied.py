"""What a reporter states, underneath what the log and the configs show: a statement counts if they say nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from oomdoctor.case.event import Value
from oomdoctor.case.settings import RunConfig, RunSettings, Scalar, WrittenSetting
from oomdoctor.case.stated import StatedFact, StatedRun
from oomdoctor.knowledge.tables.cards import card_named, choices

_OF_THE_LOG = ("gpu_name", "os")
"""What is stated about the machine, by the names of log facts."""
_OF_TRAINING = frozenset({
    "finetuning", "lora_rank", "micro_batch", "global_batch", "accumulation", "gradient_checkpointing", "zero_stage", "offload_optimizer",
    "fsdp", "packing", "optimizer", "world_size", "sequence_length", "load_bits",
})  # fmt: skip
_OF_SERVERS = frozenset({"max_model_len", "max_num_seqs", "memory_share", "tensor_parallel", "quantization"})
_DIFFERENT = 0.12
"""GPU sizes that differ by less are the same: what programs see is less than the advertised size."""
_LONGEST = 60


def stated_log_facts(run: StatedRun, log: Mapping[str, Value], total: int | None) -> dict[str, Value]:
    """Return what is stated about machine and versions, as `log.NAME`; no GPU unless it has `total` bytes, like the one that failed."""
    facts: dict[str, Value] = {}
    for fact in run.facts:
        if isinstance(fact.value, str) and (fact.name in _OF_THE_LOG or fact.name.endswith("_version")) and f"log.{fact.name}" not in log:
            facts[f"log.{fact.name}"] = fact.value
    name = facts.get("log.gpu_name")
    if name is not None and total is not None:
        card = _of_size(str(name), total)
        facts.pop("log.gpu_name")
        if card is not None:
            facts["log.gpu_name"] = card
    return facts


def _of_size(name: str, total: int) -> str | None:
    """Return the name of a GPU, with its size if it is sold in several; None if none of them has that much memory."""
    sized = [name] if card_named(name) is not None else choices(name, 8)
    for written in sized:
        card = card_named(written)
        if card is not None and abs(card.bytes - total) <= _DIFFERENT * max(card.bytes, total):
            return written
    return None


def with_stated(training: RunConfig | None, run: StatedRun, log: Mapping[str, Value], servers: Collection[str]) -> RunConfig | None:
    """Return the settings with stated values where nothing else is known, each at its line."""
    settings = training.settings if training is not None else RunSettings()
    program = (training.framework if training is not None else None) or log.get("log.framework")
    serves = settings.method == "serve" or program in servers
    added = dict(_settings(run, settings, log, serves=serves))
    if not added and not run.tried:
        return training
    base = training or RunConfig()
    places = {name: _place(fact) for name, (_, fact) in added.items()}
    return replace(
        base,
        settings=settings.with_values({name: value for name, (value, _) in added.items()}),
        places={**places, **base.places},
        stated=tuple(added),
        tried={fact.name: fact.value for fact in run.tried},
    )


def _settings(run: StatedRun, settings: RunSettings, log: Mapping[str, Value], *, serves: bool) -> Mapping[str, tuple[Scalar, StatedFact]]:
    """Return the settings that are stated and not known, by their names in such a run."""
    known = settings.known()
    if "log.model_name_or_path" in log or "log.all_params" in log:
        known["model"] = ""
    if "log.trainable_params" in log:
        known["finetuning"] = ""
    added: dict[str, tuple[Scalar, StatedFact]] = {}
    for fact in run.facts:
        name = _name(fact.name, serves=serves)
        if name is not None and name not in known:
            added.setdefault(name, (fact.value, fact))
    count = run.first("gpu_count")
    spread = added.keys() & {"zero_stage", "fsdp"} or known.keys() & {"zero_stage", "fsdp"}
    if count is not None and spread and not serves and "world_size" not in known and count.value != 1:
        added.setdefault("world_size", (count.value, count))
    return added


def _name(name: str, *, serves: bool) -> str | None:
    """Return the setting that a statement refers to in a run of this kind; None if it is not a setting."""
    if serves:
        renamed = {"sequence_length": "max_model_len"}.get(name, name)
        return None if renamed in _OF_TRAINING or renamed == "precision" or renamed not in RunSettings.__struct_fields__ else renamed
    renamed = {"max_model_len": "sequence_length"}.get(name, name)
    return None if renamed in _OF_SERVERS or renamed not in RunSettings.__struct_fields__ else renamed


def _place(fact: StatedFact) -> WrittenSetting:
    return WrittenSetting(key=fact.says[:_LONGEST], value=fact.value, file=fact.file, line=fact.line)
