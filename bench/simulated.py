#!/usr/bin/env python3
"""Compare what the simulated allocator reserves with the formulas, on training rows of a table (needs torch, transformers, peft).

    python bench/simulated.py fixtures/measured/published.csv [ROWS]

Rows whose model is a plain decoder: its code is that of Llama, Qwen 2 or Qwen 3 with the row's sizes. The simulation knows steps of one
length, so the formulas are asked for that; what was measured stands beside both. What cannot be simulated is counted by its reason.
"""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from measurements import GIB, Case, Row, measured, read
from msgspec.structs import replace

from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.errors import OomdoctorError
from oomdoctor.memory.estimate import estimate
from oomdoctor.simulation.replay import replay as replay_requests
from oomdoctor.simulation.requests import RequestLog
from oomdoctor.tracing.steps import record_steps

ROWS = 10
_HEAD = (
    "source", "model", "method", "cards", "batch", "length", "checkpointing",
    "allocated", "formulas", "reserved", "formulas", "off by", "measured",
)  # fmt: skip
_SAME = ("model", "method", "weights_dtype", "gpus", "strategy", "micro_batch", "seq_len", "grad_ckpt", "trainable_modules")
"""Columns of which one row is enough."""


def main(table: str, rows: int) -> None:
    """Print a row for each run, and the median of the differences."""
    print(f"| {' | '.join(_HEAD)} |")
    print("|" + "---|" * len(_HEAD))
    differences = []
    refused: Counter[str] = Counter()
    for row, setup, simulated in islice(_simulated(read(table), refused), rows):
        run, _ = replay_requests(simulated)
        allocated, reserved = (estimate(replace(setup, counter=counter)).expected / GIB for counter in ("max_allocated", "max_reserved"))
        differences.append(run.reserved / GIB / reserved - 1)
        cards = f"{setup.layout.cards} {setup.layout.engine}{setup.layout.stage or ''}" if setup.layout.cards > 1 else "1"
        known = [
            row["source_group"],
            row["model"],
            f"{row['method']} {setup.weights.name}",
            cards,
            row["micro_batch"],
            row["seq_len"],
            setup.checkpointing,
        ]
        figures = [f"{figure:.2f}" for figure in (run.allocated / GIB, allocated, run.reserved / GIB, reserved)]
        print(f"| {' | '.join(known + figures)} | {differences[-1]:+.1%} | {measured(row):g} {row['measured_kind']} |", flush=True)
    for reason, times in refused.most_common():
        print(f"not simulated, {times} rows: {reason}")
    off = [abs(difference) for difference in differences]
    close = sum(difference <= 0.08 for difference in off)
    print(f"\nmedian {statistics.median(off):.1%}, at most {max(off):.1%}, {close} of {len(off)} within 8 %")


def _simulated(cases: Sequence[Case], refused: Counter[str]) -> Iterator[tuple[Row, Setup, RequestLog]]:
    """Yield the runs that can be simulated, each model, method, batch and length once."""
    seen = set()
    for row, setup, _ in cases:
        key = tuple(row[name] for name in _SAME)
        if key in seen or setup.task != "train":
            continue
        config = _config(setup.shape)
        if config is None:
            refused["its model is no plain decoder"] += 1
            continue
        seen.add(key)
        even = replace(setup, even_lengths=True, fused_loss=False)
        try:
            yield row, even, record_steps(config, even)
        except OomdoctorError as why:
            refused[str(why)] += 1


def _config(shape: Shape) -> dict[str, object] | None:
    """Return the config.json of a plain decoder of such a shape; None for others."""
    plain = shape.gated and shape.rms and shape.rotary and not (shape.sandwich_norm or shape.parallel or shape.post_norm)
    if not plain or shape.experts or shape.latent or shape.vision or shape.window or shape.guessed:
        return None
    return {
        "model_type": "qwen3" if shape.qk_norm else "qwen2" if shape.attention_bias else "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "vocab_size": shape.vocab,
        "tie_word_embeddings": shape.tied,
        "architectures": ["LlamaForCausalLM"],
    }


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
