"""Measures how fast plans are found, as a ratio against estimating every combination.

    python bench/plan.py

For each run: how many combinations were decided, how many of them were estimated, the time of the search, and how many times longer
all combinations would take at the speed of one estimate.
"""

from __future__ import annotations

import time
from statistics import median

from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.settings import RunSettings
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.planning.memory_budget import memory_budget, needed
from oomdoctor.planning.run_space import run_space
from oomdoctor.planning.search import search
from oomdoctor.setups.from_settings import setup_from_settings

ROUNDS = 5
RUNS: tuple[tuple[str, str, int, str, RunSettings], ...] = (
    ("Qwen/Qwen2.5-7B", "llamafactory", 4, "RTX 4090", RunSettings(finetuning="lora", micro_batch=8, sequence_length=2048)),
    ("Qwen/Qwen2.5-7B", "transformers", 8, "RTX 4090", RunSettings(finetuning="full", micro_batch=16, sequence_length=4096)),
    ("meta-llama/Llama-3.1-70B", "transformers", 8, "RTX 4090",
     RunSettings(finetuning="full", micro_batch=64, sequence_length=8192, attention="eager", eval_strategy="steps", eval_batch=8)),
    ("meta-llama/Llama-3.1-70B", "transformers", 2, "RTX 4090",
     RunSettings(finetuning="full", micro_batch=64, sequence_length=8192, attention="eager", eval_strategy="steps", eval_batch=8)),
)  # fmt: skip


def main() -> None:
    """Print one line for each run."""
    print("| combinations | estimated | seconds | for 10,000 | all at the speed of one estimate |\n|---:|---:|---:|---:|---:|")
    for model, framework, cards, name, settings in RUNS:
        known, found = model_shape(model), card_named(name)
        if known is None or found is None:
            raise SystemExit(f"{model} or {name} is not in the tables")
        print(_line(setup_from_settings(settings, known, framework, cards)[0], memory_budget(found)))


def _line(run: Setup, within: MemoryBudget) -> str:
    search(run_space(run, within))
    seconds, one = median(_timed(run, within) for _ in range(ROUNDS)), median(_estimate(run, within) for _ in range(50))
    found = search(run_space(run, within))
    return (
        f"| {found.combinations:,} | {found.tried:,} | {seconds:.3f} | {seconds / found.combinations * 10_000:.3f} "
        f"| {found.combinations * one / seconds:.1f} x |"
    )


def _timed(run: Setup, within: MemoryBudget) -> float:
    began = time.perf_counter()
    search(run_space(run, within))
    return time.perf_counter() - began


def _estimate(run: Setup, within: MemoryBudget) -> float:
    began = time.perf_counter()
    needed(run, within)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
