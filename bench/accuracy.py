#!/usr/bin/env python3
"""Estimates against published measurements -> docs/accuracy.md.

    python bench/accuracy.py TABLE.csv > docs/accuracy.md

TABLE.csv has one measurement a row with the columns that `row_spec` names; it is not part of this repository. A row counts when
it says what it measured: batch, length and checkpointing for training, the length for inference, and no stated minimum.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import verdicts
from msgspec import convert

from oomdoctor.case.estimate import Assumption, Setup
from oomdoctor.memory import allocator
from oomdoctor.memory.estimate import estimate
from oomdoctor.sizing.spec import Refused, Spec, setup

GIB = 1 << 30
FRAMEWORKS = {
    "litgpt": "litgpt", "torchtune": "torchtune", "swift": "ms-swift", "llamafactory": "llamafactory", "qwen1-finetune": "hf-trainer",
    "peft": "hf-trainer", "fsdp-qlora": "fsdp-qlora", "torchtitan": "torchtitan", "unsloth": "unsloth", "glm": "glm-4",
}  # fmt: skip
COUNTERS = ("max_allocated", "max_reserved", "nvidia-smi", "peak_active")
WORST = 24
Row = dict[str, str]
Case = tuple[Row, Setup, tuple[Assumption, ...]]

CHOSEN: dict[str, tuple[str, Callable[[float], Any], float, Sequence[float]]] = {
    "kept by the allocator, even lengths": ("_EVEN", lambda value: (0.0, value, 0.30), 0.10, (0.0, 0.05, 0.10, 0.20, 0.30)),
    "kept by the allocator, uneven lengths": ("_UNEVEN", lambda value: (0.10, value, 2.80), 1.50, (0.5, 1.0, 1.5, 2.0)),
    "kept by the allocator, counter unknown": ("_UNSAID", lambda value: (0.0, value, 0.80), 0.10, (0.0, 0.10, 0.20, 0.40)),
    "cache that grows by concatenation": ("_GROWING", lambda value: (0.0, value, 1.30), 1.00, (0.0, 0.5, 1.0, 1.3)),
    "CUDA context, MiB": ("_CONTEXT", lambda value: int(value) << 20, 700, (300, 500, 700, 900)),
    "kernels of training, MiB": ("_KERNELS", lambda value: int(value) << 20, 600, (0, 300, 600, 900)),
    "NCCL, MiB": ("_NCCL", lambda value: int(value) << 20, 1000, (0, 500, 1000, 1500)),
}
"""What was chosen with the measurements in sight: the name in oomdoctor/memory/allocator.py, how it is set, its value, others to try."""

WHY = """\
- **Lengths**: a stated length is where samples are cut; scripts whose data are shorter took much less (the QLoRA rows of old
  ms-swift scripts, torchtune without packing).
- **The batch of a table** can be the one over all cards (torchtune, Llama-2-70B) or local (torchtitan); the column does not say.
- **16-bit or fp32 states** of full training are not named in most tables.
- **Vision models**: the number of tiles of an image, whether the tower's activations are kept, and the size of several towers are
  unknown.
- **Int8 KV caches** (the lower rows of the Qwen-7B table) are not said by any column that is read.
- **Prompts**: the Qwen3 table agrees with weights and cache alone, the Qwen2.5 table with the MLP of the whole prompt on top;
  AutoAWQ and GLM-4 have more on top, as with logits or attention scores of the whole prompt. A trace of transformers 5.23
  (`estimate --trace`) has three tensors as wide as the MLP for every token of the prompt, so the MLP is expected.
- **Totals of several cards**: tables of generation publish the sum, and the row is its mean; the estimate is of the fullest card,
  which has a layer or two more (`device_map="auto"` keeps room free on the first).
- **Pipelines** that interleave hold more micro batches than 1F1B; no column says which schedule it was, so they widen the range.
- **torchtitan since 2025** compiles the fp32 copy of the logits away (4 bytes a logit, not 10); no column says which version it was."""

MISSING = """\
- Mixtures of experts in training (one table row), expert parallelism, Ulysses beyond the division of tokens.
- Diffusion models, and encoder-decoder models without a text config. State-space layers have no formula; `--trace` counts them.
- GELU written out in Python (phi, GPT-2, GPT-J of transformers) keeps three more tensors as wide as the MLP than the formula has;
  `--trace` counts them.
- Evaluation, loading and saving are phases of their own, but no measurement names them.
- Preference tuning with a reference model, and rollouts of reinforcement learning."""


def main(path: str) -> None:
    """Prints the document."""
    with open(path, encoding="utf-8", newline="") as file:
        cases = list(_cases(row for row in csv.DictReader(file) if counts(row)))
    sys.stdout.write("\n".join(_document(cases)) + "\n")


def counts(row: Row) -> bool:
    """Whether a row says what it measured."""
    if row["measured_kind"] == "stated-minimum" or not row["measured_gib_per_gpu"]:
        return False
    return bool(row["seq_len"] and (row["task"] != "train" or (row["micro_batch"] and row["grad_ckpt"])))


def row_spec(row: Row) -> Spec:
    """A row as a question."""
    checkpointing = row["grad_ckpt"].strip().lower()
    names = {
        "model": "model",
        "task": "task",
        "method": "method",
        "trainable_modules": "trainable_modules",
        "weights_dtype": "weights_dtype",
    }
    names |= {
        "compute_dtype": "compute_dtype",
        "optimizer": "optimizer",
        "strategy": "strategy",
        "gpu": "gpu_model",
        "attention": "attention_impl",
    }
    names |= {"packing": "packing", "offload": "offload", "family": "hf_config_family"}
    numbers = {
        "params": "params",
        "lora_rank": "lora_rank",
        "gpus": "gpus",
        "micro_batch": "micro_batch",
        "grad_accum": "grad_accum",
        "seq_len": "seq_len",
    }
    return convert(
        {key: row[column] or None for key, column in names.items()}
        | {key: int(row[column]) if row[column].isdigit() else None for key, column in numbers.items()}
        | {
            "framework": next((name for start, name in FRAMEWORKS.items() if row["source_group"].startswith(start)), None),
            "gradient_checkpointing": None
            if not checkpointing
            else "selective"
            if checkpointing.startswith("sel")
            else not checkpointing.startswith("no"),
            "counter": row["measured_kind"] if row["measured_kind"] in COUNTERS else None,
        },
        Spec,
    )


def _cases(rows: Iterator[Row]) -> Iterator[Case]:
    for row in rows:
        made = setup(row_spec(row))
        if not isinstance(made, Refused):
            yield (row, *made)


def _document(cases: Sequence[Case]) -> Iterator[str]:
    yield "# How near the estimates are\n"
    sources = len({row["source_group"] for row, *_ in cases})
    yield f"Made by `bench/accuracy.py` from {len(cases)} published measurements of {sources} sources."
    yield "An error is |expected - measured| / measured. *Covered*: the measurement lies in the range. *Under*: it lies above."
    yield "*Width*: of the range, against the expected figure, in the middle of all rows. Some constants were chosen with these rows in"
    yield "sight; how much that flatters is the last table.\n"
    yield "## By group\n"
    yield from _table(cases, lambda row: _group(row), "group")
    yield "\n## By source\n"
    yield from _table(cases, lambda row: f"{row['source_group']}, {row['task']}", "source")
    yield f"\n## The {WORST} worst rows\n"
    yield "| source | model | method | cards | batch | length | estimated GiB | measured GiB |\n|---|---|---|---|---|---|---|---|"
    for row, said in sorted(((row, estimate(made, why).expected / GIB) for row, made, why in cases), key=lambda one: -_error(*one))[:WORST]:
        cells = (
            row["source_group"],
            row["model"],
            row["method"],
            row["gpus"],
            row["micro_batch"],
            row["seq_len"],
            f"{said:.1f}",
            row["measured_gib_per_gpu"],
        )
        yield f"| {' | '.join(cells)} |"
    yield f"\nWhy:\n\n{WHY}\n\n## Not covered\n\n{MISSING}\n"
    yield from verdicts.section(cases)
    yield from _leave_one_out(cases)


def _group(row: Row) -> str:
    return "inference" if row["task"] == "infer" else "training, one card" if row["gpus"] == "1" else "training, several cards"


def _table(cases: Sequence[Case], key: Callable[[Row], str], title: str) -> Iterator[str]:
    yield f"| {title} | rows | median error | 90 % below | covered | under | width |\n|---|---|---|---|---|---|---|"
    named = sorted(((key(case[0]), case) for case in cases), key=itemgetter(0))
    for name, group in groupby(named, key=itemgetter(0)):
        yield _line(name, [case for _, case in group])
    yield _line("all", cases)


def _line(name: str, cases: Sequence[Case]) -> str:
    found = [(estimate(made, why), float(row["measured_gib_per_gpu"]) * GIB) for row, made, why in cases]
    errors = sorted(abs(one.expected - measured) / measured for one, measured in found)
    covered = sum(one.low <= measured <= one.high for one, measured in found) / len(found)
    under = sum(one.high < measured for one, measured in found) / len(found)
    width = statistics.median((one.high - one.low) / one.expected for one, _ in found)
    shares = [statistics.median(errors), errors[min(len(errors) - 1, int(0.9 * len(errors)))], covered, under, width]
    return f"| {name} | {len(found)} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


def _error(row: Row, said: float) -> float:
    measured = float(row["measured_gib_per_gpu"])
    return abs(said - measured) / measured


def _leave_one_out(cases: Sequence[Case]) -> Iterator[str]:
    """For each chosen constant: what would have been chosen without a source, and what that does to the source's own error."""
    yield "## Leave one source out\n"
    yield "For each constant that was chosen with measurements in sight: the value that the other sources would have chosen (by their"
    yield "median error), and the median error of the source that was left out, with the value in use and with theirs. Sources that the"
    yield "constant does not touch are not listed. Where there is no other source, the figure in use rests on one table. Bytes of logits,"
    yield "activations, weights and states are no such constants: they were counted in the programs' code.\n"
    yield "| constant | in use | left out | chosen by the others | error, in use | error, theirs |\n|---|---|---|---|---|---|"
    for title, (name, make, used, grid) in CHOSEN.items():
        errors = {value: _errors_with(cases, name, make(value)) for value in sorted({*grid, used})}
        touched = [one for one in errors[used] if any(errors[value][one] != errors[used][one] for value in errors)]
        for source in touched:
            others = [one for one in touched if one != source]
            best = min(errors, key=lambda value: (_middle(errors[value], others), abs(value - used))) if others else None
            theirs = "no other source" if best is None else f"{best:g}"
            after = "" if best is None else f"{statistics.median(errors[best][source]):.1%}"
            yield f"| {title} | {used:g} | {source} | {theirs} | {statistics.median(errors[used][source]):.1%} | {after} |"


def _errors_with(cases: Sequence[Case], name: str, value: object) -> dict[str, list[float]]:
    before = getattr(allocator, name)
    setattr(allocator, name, value)
    try:
        out: dict[str, list[float]] = {}
        for row, made, why in cases:
            out.setdefault(row["source_group"], []).append(_error(row, estimate(made, why).expected / GIB))
        return out
    finally:
        setattr(allocator, name, before)


def _middle(errors: dict[str, list[float]], sources: Sequence[str]) -> float:
    return statistics.median(error for source in sources for error in errors[source])


if __name__ == "__main__":
    main(sys.argv[1])
