#!/usr/bin/env python3
"""Estimates against published measurements -> docs/accuracy.md.

    python bench/accuracy.py TABLE.csv > docs/accuracy.md

TABLE.csv has one measurement a row (bench/measurements.py says which columns); it is not part of this repository. A second table is:
fixtures/measured/published.csv, collected before the model had seen any of it.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import left_out
import verdicts
from measurements import GIB, Case, Row, error, measured, read

from oomdoctor.memory.estimate import estimate

WORST = 24
OWN = os.path.join(os.path.dirname(__file__), "..", "fixtures", "measured", "published.csv")

BLIND = """\
| group | rows | median error | 90 % below | covered | under | width |
|---|---|---|---|---|---|---|
| inference | 45 | 8.5% | 38.6% | 84.4% | 13.3% | 37.9% |
| training, one card | 44 | 19.1% | 39.2% | 65.9% | 31.8% | 58.9% |
| training, several cards | 30 | 13.7% | 46.4% | 80.0% | 10.0% | 40.6% |
| all | 119 | 12.6% | 39.2% | 76.5% | 19.3% | 42.6% |

| group | rows | median error | 90 % below | covered | under | width |
|---|---|---|---|---|---|---|
| inference | 32 | 8.0% | 47.1% | 84.4% | 6.2% | 41% |
| training, one card | 22 | 16.8% | 65.0% | 50.0% | 9.1% | 50% |
| training, several cards | 53 | 12.5% | 92.1% | 66.0% | 15.1% | 47% |
| all | 107 | 11.6% | 92.1% | 68.2% | 11.2% | 42% |"""
"""The one reading of each half of the second table before anything was mended (2026-11-21), with rows that were left out afterwards
because their batch, length or method is in doubt (1 of the first, 9 of the second)."""

WHY = """\
- **Lengths**: a stated length is where samples are cut; scripts whose data are shorter took much less (the QLoRA rows of old
  ms-swift scripts, torchtune without packing).
- **The batch of a table** can be the one over all cards (torchtune, Llama-2-70B) or local (torchtitan); the column does not say.
- **16-bit or fp32 states** of full training are not named in most tables.
- **Vision models**: the number of tiles of an image, whether the tower's activations are kept, and the size of several towers are
  unknown.
- **Int8 KV caches** (the lower rows of the Qwen-7B table) are not said by any column that is read.
- **Prompts**: the Qwen3 table says weights, cache and 0.03 to 0.05 GiB at every length (more with AWQ), so it is not the peak of the
  prompt, whatever its column says; the Qwen2.5 table has the MLP of the whole prompt on top, which is what transformers 4.31 to 5.23
  hold when each storage is counted. Tables of Qwen2 and AutoAWQ have the logits of the whole prompt
  on top: their transformers is older than 4.45, which no column says.
- **Attention of AutoAWQ** before flash attention wrote scores for every pair of tokens; its cache is made whole at the start.
- **AWQ files of tied models** hold the output projection again where AutoAWQ of 2024 wrote them: at short lengths the Qwen2.5 table has
  exactly these weights (1.5B: 1.504 of 1.51 GiB, 3B: 2.502 of 2.50), at long ones those without. Files of today do not, and no column
  says which it was; the estimate is without.
- **Totals of several cards**: tables of generation publish the sum, and the row is its mean; the estimate is of the fullest card,
  which has a layer or two more (`device_map="auto"` keeps room free on the first).
- **Pipelines** that interleave hold more micro batches than 1F1B; no column says which schedule it was, so they widen the range.
- **torchtitan since 2025** compiles the fp32 copy of the logits away (4 bytes a logit, not 10); no column says which version it was."""

MISSING = """\
- Mixtures of experts in training (one table row), expert parallelism, Ulysses beyond the division of tokens.
- Diffusion models, and encoder-decoder models without a text config. State-space layers have no formula; `--trace` counts them.
- Evaluation, loading and saving are phases of their own, but no measurement names them.
- Preference tuning with a reference model, and rollouts of reinforcement learning."""


def main(path: str) -> None:
    """Prints the document."""
    sys.stdout.write("\n".join(_document(read(path), read(OWN))) + "\n")


def _document(cases: Sequence[Case], own: Sequence[Case]) -> Iterator[str]:
    yield "# How near the estimates are\n"
    yield f"Made by `bench/accuracy.py` from {_number(cases)}, and from {_number(own)} in `fixtures/measured/published.csv`."
    yield "An error is |expected - measured| / measured. *Covered*: the measurement lies in the range. *Under*: it lies above."
    yield "*Width*: of the range, against the expected figure, in the middle of all rows.\n"
    yield "## By group\n"
    yield "Some constants were chosen with these rows in sight; how much that flatters is the last part.\n"
    yield from _table(cases, _group, "group")
    yield "\n## A second table, first read blind\n"
    yield "It was collected from other sources, in two halves, while nobody looked at what the model says of them. The one reading of"
    yield f"each half, which is the honest figure for runs that the model has not seen:\n\n{BLIND}\n"
    yield "The first half showed fp32 embeddings and hidden states after peft's preparation of packed models, gradients of eager attention,"
    yield "GPTQ matrices that are kept for the backward pass, the prompt's working set, and logits of whole prompts in old versions. The"
    yield "second showed fused losses, which its questions could not say, what Megatron keeps and divides, experts on several cards, and"
    yield "whole gradients of FSDP2, of which there are none. These were mended in general. Since then:\n"
    yield from _table(own, _group, "group")
    yield "\n## By source\n"
    yield from _table([*cases, *own], lambda row: f"{row['source_group']}, {row['task']}", "source")
    yield f"\n## The {WORST} worst rows of each table\n"
    yield "| source | model | method | cards | batch | length | estimated GiB | measured GiB |\n|---|---|---|---|---|---|---|---|"
    yield from _worst(cases)
    yield from _worst(own)
    yield f"\nWhy:\n\n{WHY}\n\n## Not covered\n\n{MISSING}\n"
    yield from verdicts.section([*cases, *own])
    yield "## Leave one source out: the expected figure\n"
    yield "For each constant that was chosen with measurements in sight: the value that the other sources of the first table would have"
    yield "chosen (by their median error), and the median error of the source that was left out, with the value in use and with theirs."
    yield "Sources that the constant does not touch are not listed. Where there is no other source, the figure in use rests on one"
    yield "table. Bytes of logits, activations, weights and states are no such constants: they were counted in the programs' code.\n"
    yield from left_out.expected(cases)
    yield "\n## Leave one source out: the range\n"
    yield "What no formula names widens a range by a share of the whole. For each source: the narrowest margins with which 90 % of the"
    yield "other sources' rows are covered and at most 4 % lie above, and how the source fares with those in use and with theirs.\n"
    yield from left_out.margins(cases)


def _number(cases: Sequence[Case]) -> str:
    return f"{len(cases)} published measurements of {len({row['source_group'] for row, *_ in cases})} sources"


def _worst(cases: Sequence[Case]) -> Iterator[str]:
    said = ((row, estimate(made, why).expected / GIB) for row, made, why in cases)
    for row, size in sorted(said, key=lambda one: -error(*one))[:WORST]:
        known = [row[name] for name in ("source_group", "model", "method", "gpus", "micro_batch", "seq_len")]
        yield f"| {' | '.join(known)} | {size:.1f} | {measured(row):g} |"


def _group(row: Row) -> str:
    return "inference" if row["task"] == "infer" else "training, one card" if row["gpus"] == "1" else "training, several cards"


def _table(cases: Sequence[Case], key: Callable[[Row], str], title: str) -> Iterator[str]:
    yield f"| {title} | rows | median error | 90 % below | covered | under | width |\n|---|---|---|---|---|---|---|"
    named = sorted(((key(case[0]), case) for case in cases), key=itemgetter(0))
    for name, group in groupby(named, key=itemgetter(0)):
        yield _line(name, [case for _, case in group])
    yield _line("all", cases)


def _line(name: str, cases: Sequence[Case]) -> str:
    found = [(estimate(made, why), measured(row) * GIB) for row, made, why in cases]
    errors = sorted(abs(one.expected - size) / size for one, size in found)
    covered = sum(one.low <= size <= one.high for one, size in found) / len(found)
    under = sum(one.high < size for one, size in found) / len(found)
    width = statistics.median((one.high - one.low) / one.expected for one, _ in found)
    shares = [statistics.median(errors), errors[min(len(errors) - 1, int(0.9 * len(errors)))], covered, under, width]
    return f"| {name} | {len(found)} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


if __name__ == "__main__":
    main(sys.argv[1])
