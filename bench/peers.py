#!/usr/bin/env python3
"""The same published rows asked of oomdoctor and of other tools that say what a model takes of a card.

    python bench/peers.py --python PYTHON      # PYTHON has accelerate, torch, transformers, fitcheck-llm and llmfit; into docs/benchmark.md
    python bench/peers.py                      # oomdoctor alone, printed

Nothing is fetched: the configs of the models are written from rules/tables/models.json, into a cache like that of huggingface_hub.
Training rows are those of fixtures/measured/peers.csv, which took no part in choosing any constant here; they were measured by the authors
of fitcheck. Answering rows are those of fixtures/measured/published.csv in 16 bit on one card.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import oomdoctor
from oomdoctor.case.estimate import Estimate
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.tables.shapes import model_shape

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "fixtures" / "measured"
REPORT = ROOT / "docs" / "benchmark.md"
BEGIN, END = "<!-- bench/peers.py writes from here -->", "<!-- bench/peers.py writes to here -->"
GIB = 1 << 30
Row = Mapping[str, str]
Answers = Mapping[str, float]
"""GiB by the id of a row; a row that a tool cannot be asked is not there."""
_TARGETS = "q_proj,k_proj,v_proj,o_proj"
_ACCELERATE = """
import json, sys
from accelerate import init_empty_weights
from accelerate.utils import calculate_maximum_sizes
from transformers import AutoConfig, AutoModelForCausalLM
for line in sys.stdin:
    with init_empty_weights():
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(line.strip()))
    print(calculate_maximum_sizes(model)[0] / 4, flush=True)
"""
"""What `accelerate estimate-memory` counts, without asking the hub for the model: parameters, of which it takes bytes of a type."""
CANNOT = {
    "oomdoctor": "speed on a GPU that nobody has measured",
    "fitcheck": "multiple GPUs, ZeRO and FSDP, server memory other than weights and cache, images, a range",
    "accelerate": "adapters, activations, the cache, a range: it counts weights, and four times that for Adam",
    "llmfit": "training, multiple GPUs, memory of a single step, a range",
}


def training_rows() -> list[Row]:
    """Return the rows that train."""
    with (MEASURED / "peers.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def answering_rows() -> list[Row]:
    """Return the rows that answer, in 16 bit on one card."""
    with (MEASURED / "published.csv").open(encoding="utf-8", newline="") as file:
        rows = [{**row, "measured_gib": row["measured_gib_per_gpu"]} for row in csv.DictReader(file)]
    kept = (row for row in rows if row["task"] == "infer" and row["gpus"] == "1" and row["weights_dtype"] in ("bf16", "fp16"))
    return [row for row in kept if row["method"] == "generate" and row["seq_len"].isdecimal() and row["micro_batch"].isdecimal()]


def by_oomdoctor(rows: Iterable[Row]) -> Answers:
    """Ask this project by options."""
    answers = {}
    for row in rows:
        trains = "lora_rank" in row and row.get("task") != "infer"
        told = (
            _trained(row)
            if trains
            else {"method": "generate", "micro_batch": int(row["micro_batch"]), "max_model_len": int(row["seq_len"])}
        )
        counter = row["measured_kind"] if row["measured_kind"] in ("max_allocated", "max_reserved") else "nvidia-smi"
        try:
            found = oomdoctor.estimate(model=row["model"], framework="transformers", settings={**told, "counter": counter}).estimate
        except UsageError:
            continue
        answers[row["id"]] = found.expected / GIB if isinstance(found, Estimate) else 0.0
    return answers


def _trained(row: Row) -> dict[str, str | int | bool]:
    return {
        "finetuning": row["method"],
        "lora_rank": int(row["lora_rank"]),
        "lora_targets": _TARGETS,
        "micro_batch": int(row["micro_batch"]),
        "sequence_length": int(row["seq_len"]),
        "gradient_checkpointing": True,
        "attention": row["attention"],
        "precision": row["precision"],
        "optimizer": "adamw_torch",
        "packing": True,
    }


def by_fitcheck(rows: Iterable[Row], python: Path, cache: Path) -> Answers:
    """Ask fitcheck, with configs of a cache and no network."""
    answers = {}
    for row in rows:
        words = [row["model"], "--quant", "nf4", "--precision", row["precision"], "--grad-checkpoint", "--batch-size", row["micro_batch"]]
        words += ["--seq-len", row["seq_len"], "--lora-r", row["lora_rank"], "--lora-targets", row["targets"], "--gpu", "t4", "--json"]
        words += [] if row["attention"] == "eager" else ["--flash-attn"]
        text = _run([str(python.parent / "fitcheck"), *words], {"HF_HOME": str(cache), "HF_HUB_OFFLINE": "1"})
        if text.startswith("{"):
            answers[row["id"]] = json.loads(text)["memory_mib"]["total"] / 1024
    return answers


def by_accelerate(rows: Iterable[Row], python: Path, cache: Path) -> Answers:
    """Ask what accelerate counts, of models that answer."""
    asked = [(row, folder) for row in rows if (folder := _snapshot(row["model"], cache)) is not None]
    said = _run([str(python), "-c", _ACCELERATE], {}, "".join(f"{folder}\n" for _, folder in asked)).split()
    return {row["id"]: 2 * float(params) / GIB for (row, _), params in zip(asked, said)}


def by_llmfit(rows: Iterable[Row], python: Path, _: Path) -> Answers:
    """Ask llmfit, which has a table of models of its own."""
    answers = {}
    for row in rows:
        words = ["plan", row["model"], "--context", row["seq_len"], "--quant", "F16", "--json"]
        text = _run([str(python.parent / "llmfit"), *words], {})
        if text.startswith("{") and "minimum" in (told := json.loads(text)):
            answers[row["id"]] = told["minimum"]["vram_gb"] * 1e9 / GIB
    return answers


def _run(words: list[str], variables: Mapping[str, str], given: str = "") -> str:
    done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=600, check=False, env={**os.environ, **variables})
    return done.stdout.strip()


def _snapshot(model: str, cache: Path) -> Path | None:
    """Return the folder of a model's config in a cache, written from what is known of its shape; None for a shape of another kind."""
    shape = model_shape(model)
    if shape is None or shape.each or shape.experts or shape.vision or not shape.gated or not shape.rms or shape.latent:
        return None
    config = {
        "model_type": "qwen3" if shape.qk_norm else "qwen2" if shape.attention_bias else "llama",
        "architectures": ["LlamaForCausalLM"], "hidden_size": shape.hidden, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads, "head_dim": shape.head,
        "intermediate_size": shape.intermediate, "vocab_size": shape.vocab, "tie_word_embeddings": shape.tied,
        "max_position_embeddings": shape.longest or 32768,
    }  # fmt: skip
    place = cache / "hub" / f"models--{model.replace('/', '--')}"
    folder = place / "snapshots" / "0"
    folder.mkdir(parents=True, exist_ok=True)
    (place / "refs").mkdir(exist_ok=True)
    (place / "refs" / "main").write_text("0", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def line(name: str, rows: list[Row], answers: Answers) -> str:
    """Return a tool's line of the table."""
    pairs = [(answers[row["id"]], float(row["measured_gib"])) for row in rows if row["id"] in answers]
    errors = sorted(abs(answer - measured) / measured for answer, measured in pairs)
    if not errors:
        return f"| {name} | 0 of {len(rows)} | | | {CANNOT[name]} |"
    ninth = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    return f"| {name} | {len(errors)} of {len(rows)} | {statistics.median(errors):.1%} | {ninth:.1%} | {CANNOT[name]} |"


Tool = Callable[[Iterable[Row], Path, Path], Answers]


def main() -> None:
    """Ask all, print the tables, and write them where every tool was there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path)
    python = parser.parse_args().python
    groups: list[tuple[str, list[Row], dict[str, Tool]]] = [
        ("QLoRA on a T4", training_rows(), {"fitcheck": by_fitcheck}),
        ("16-bit inference on one GPU", answering_rows(), {"accelerate": by_accelerate, "llmfit": by_llmfit}),
    ]
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for title, rows, tools in groups:
            for row in rows:
                _snapshot(row["model"], Path(folder))
            lines += [f"| {title} | answered | median error | 90th percentile | not covered |", "|---|---|---|---|---|"]
            lines.append(line("oomdoctor", rows, by_oomdoctor(rows)))
            lines += [line(name, rows, tool(rows, python, Path(folder)) if python else {}) for name, tool in tools.items()]
            lines.append("")
    text = "\n".join(lines)
    print(text)
    if python is not None:
        before, after = (REPORT.read_text(encoding="utf-8").split(mark) for mark in (BEGIN, END))
        REPORT.write_text(f"{before[0]}{BEGIN}\n{text}\n{END}{after[1]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
