"""The documentation page on framework defaults, generated from rules/frameworks."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.setup import Engine
from oomdoctor.knowledge.records.framework import FrameworkRecord, TrainingDefault
from oomdoctor.knowledge.tables.memory import framework_traits, known_format, optimizer_named
from oomdoctor.knowledge.tables.training_defaults import DefaultsQuery, framework_records

_HEAD = """# Framework defaults

Values that frameworks use if a config sets none, generated from `defaults` in rules/frameworks
(`python -m pytest tests/knowledge/test_training_defaults.py --bless`). If the version is unknown, the newest release that was examined is assumed, and an
estimate names it. Sizes are bytes per parameter for weights, gradients and Adam in full training, on one GPU and on N GPUs; copies for computation, buckets
and activations are added to that.
"""
_COLUMNS = ("framework", "release", "full training", "one GPU", "DeepSpeed ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP", "FSDP2", "frozen base", "adapters",
            "rank", "checkpointing", "optimizer", "batch size", "sequence length", "chunked loss")  # fmt: skip
_NAMES = {
    "full_weights": "weights, full training",
    "frozen_weights": "weights under adapters",
    "adapter_weights": "adapters",
    "lora_rank": "adapter rank",
    "wide_ends": "embedding and output projection in fp32",
    "wide_experts": "routed experts not quantized to 4 or 8 bit",
    "wide_gradients": "gradients and master weights in fp32",
    "checkpointing": "checkpointing",
    "fused_loss": "chunked loss",
    "optimizer": "optimizer",
    "batch": "batch size per GPU",
    "length": "sequence length",
}
_LAYERS = ("deepspeed", "accelerate")


def page() -> str:
    """Return the page."""
    records = [record for record in framework_records().values() if record.defaults is not None]
    trainers = sorted((record for record in records if record.framework not in _LAYERS), key=lambda record: record.title.lower())
    layers = [record for record in records if record.framework in _LAYERS]
    lines = [_HEAD, _row(_COLUMNS), _row(("---",) * len(_COLUMNS)), *(_row(_summary(record)) for record in trainers)]
    for record in (*trainers, *layers):
        lines += [
            "",
            f"## {record.title}",
            "",
            _row(("setting", "value", "versions", "applies to", "source")),
            _row(("---",) * 5),
            *_rows(record),
        ]
    return "\n".join(lines) + "\n"


def _summary(record: FrameworkRecord) -> Iterator[str]:
    traits = framework_traits(record.framework)
    yield from (record.title, traits.version, traits.full_weights + (", ends fp32" if traits.wide_ends else ""))
    yield _bytes(record, "none", 0)
    mixed = traits.autocast
    yield from (_bytes(record, "deepspeed", stage) if mixed else "" for stage in (1, 2, 3))
    yield from (_bytes(record, engine, 3) if not traits.wide_gradients else "" for engine in _FSDP)
    has_adapters = bool(record.defaults and (record.defaults.frozen_weights or record.trains_like))
    yield from ((traits.frozen_weights, {4: "fp32", 2: "bf16"}[traits.adapter_bytes], str(traits.rank)) if has_adapters else ("", "", ""))
    yield "selective" if traits.selective else "on" if traits.checkpointing else "off"
    yield from (traits.optimizer, str(traits.batch), str(traits.length or ""), "yes" if traits.fused_loss else "no")


_FSDP: tuple[Engine, ...] = ("fsdp1", "fsdp2")


def _bytes(record: FrameworkRecord, engine: Engine, stage: int) -> str:
    """Return the sum, as `2 + 14/N`."""
    traits = framework_traits(record.framework, DefaultsQuery(engine=engine))
    width = known_format(traits.full_weights).bytes_per_param
    optimizer = optimizer_named(traits.optimizer)
    assert optimizer is not None
    masters = engine == "deepspeed" or traits.wide_gradients
    kept = optimizer.bytes_per_param
    states = (2 * (4 if masters else width) if kept is None else kept) + (4 if masters else 0)
    parts = (width, 4 if traits.wide_gradients else width, states)
    first_sharded = {0: 3, 1: 2, 2: 1, 3: 0}[stage]
    whole, shared = sum(parts[:first_sharded]), sum(parts[first_sharded:])
    return " + ".join([*([f"{whole:g}"] if whole else []), *([f"{shared:g}/N"] if shared else [])])


def _rows(record: FrameworkRecord) -> Iterator[str]:
    for name, title in _NAMES.items():
        for row in getattr(record.defaults, name):
            yield _row((title, str(row.value).lower(), _versions(row), _where(row), row.source))


def _versions(row: TrainingDefault) -> str:
    return " ".join([*([f"from {row.since}"] if row.since else []), *([f"up to {row.until}"] if row.until else [])])


def _where(row: TrainingDefault) -> str:
    parts = [*row.engines, *row.methods, *row.attentions, *([f"weights specified as {row.weights}"] if row.weights else [])]
    return ", ".join([*parts, *(["quantized base"] if row.packed else [])])


def _row(cells: Iterator[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
