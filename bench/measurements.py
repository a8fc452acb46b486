"""Tables of measured peaks, one measurement a row, as questions to the memory model.

A row counts when it says what it measured: batch, length and checkpointing for training, the length for inference, and no stated
minimum. The columns are those that `_SAME` and `_NUMBERS` name; an empty cell is unknown.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from msgspec import convert

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.setup import Setup
from oomdoctor.setups.spec import RefusedSpec, Spec, setup_from_spec

GIB = 1 << 30
Row = dict[str, str]
Case = tuple[Row, Setup, tuple[Assumption, ...]]

_FRAMEWORKS = {
    "litgpt": "litgpt", "torchtune": "torchtune", "swift": "ms-swift", "llamafactory": "llamafactory", "qwen1-finetune": "hf-trainer",
    "peft": "hf-trainer", "fsdp-qlora": "fsdp-qlora", "torchtitan": "torchtitan", "unsloth": "unsloth", "glm": "glm-4",
    "axolotl": "axolotl", "trl": "trl",
}  # fmt: skip
"""The framework of a source, by how its name begins."""
_COUNTERS = ("max_allocated", "max_reserved", "nvidia-smi", "peak_active")
_SAME = ("model", "task", "method", "trainable_modules", "weights_dtype", "compute_dtype", "optimizer", "strategy", "packing", "offload")
_OTHER = {"gpu": "gpu_model", "attention": "attention_impl", "family": "hf_config_family"}
_NUMBERS = ("params", "lora_rank", "gpus", "micro_batch", "grad_accum", "seq_len")


def read(path: str) -> list[Case]:
    """Return the rows of a table that count and that the model answers."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(_cases(row for row in csv.DictReader(file) if _counts(row)))


def measured(row: Row) -> float:
    """GiB of one card."""
    return float(row["measured_gib_per_gpu"])


def error(row: Row, said: float) -> float:
    """Return the fraction by which an estimate in GiB is off."""
    return abs(said - measured(row)) / measured(row)


def is_counter_known(row: Row) -> bool:
    """Whether a row says which counter it read."""
    return row["measured_kind"] in _COUNTERS


def framework_of(row: Row) -> str | None:
    """Return the framework of a row's source; None where that is a script of somebody's own."""
    return next((name for start, name in _FRAMEWORKS.items() if row["source_group"].startswith(start)), None)


def _counts(row: Row) -> bool:
    if row["measured_kind"] == "stated-minimum" or not row["measured_gib_per_gpu"]:
        return False
    return bool(row["seq_len"] and (row["task"] != "train" or (row["micro_batch"] and row["grad_ckpt"])))


def _cases(rows: Iterator[Row]) -> Iterator[Case]:
    for row in rows:
        made = setup_from_spec(spec_of(row))
        if not isinstance(made, RefusedSpec):
            yield (row, *made)


def spec_of(row: Row) -> Spec:
    """Return a row as a line of JSON, with all that the table says."""
    texts = {key: row[column] or None for key, column in {**{name: name for name in _SAME}, **_OTHER}.items()}
    numbers = {name: int(row[name]) if row[name].isdigit() else None for name in _NUMBERS}
    framework = framework_of(row)
    counter = row["measured_kind"] if is_counter_known(row) else None
    rest = {
        "fused_loss": row.get("loss") == "fused" or None,
        "prompt_logits": row.get("loss") == "whole prompt" or None,
        "framework": framework,
        "gradient_checkpointing": _checkpointing(row["grad_ckpt"].strip().lower()),
        "counter": counter,
    }
    return convert({**texts, **numbers, **rest}, Spec)


def _checkpointing(said: str) -> bool | str | None:
    if not said:
        return None
    return "selective" if said.startswith("selective") else not said.startswith("no")
