"""The tables of rules/tables/*.csv, checked: their columns, and numbers, versions and words where a column holds those."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from oomdoctor.knowledge.references import Wrong
from oomdoctor.knowledge.yaml_file import did_you_mean

TABLES: Mapping[str, str] = {
    "rollout_engines": "framework on_cards share:number sleeps:yes-or-no reference:yes-or-no source",
    "activation_functions": "names inside:number inside_autocast:number keeps_output:yes-or-no source",
    "card_totals": "card memory_gb:number total_gib:number source",
    "cards": "names compute_capability:version? unified:yes-or-no memory_gb:numbers? source",
    "compute_capabilities": (
        "compute_capability:version architecture bf16_native:yes-or-no fp16_rate cuda_since:version cuda_until:version? source"
    ),
    "compared_cards": "card source",
    "compared_formats": "use format source",
    "cuda_minimum": "cuda:version driver:version source",
    "driver_branches": "branch:version cuda:version source",
    "gguf_mixtures": "name names? base value? down? bumped:layers? attention_output? head embedding? experts? source",
    "cache_types": "name names? bits:number per_head:number source",
    "context_defaults": "framework card_gib:number tokens:number source",
    "gguf_types": "name values:number bytes:number instead? source",
    "instances": "names card cards:number? source",
    "gguf_windows": "architecture period:number window:number? source",
    "measures": "measure fix:fix risk effort:number capability:version? general:yes-or-no source",
    "name_words": "of:model-or-card kind words means? source",
    "refusals": "check programs value? since:version? until:version? message source",
    "request_lengths": "begins tokens:number source",
    "served_items": (
        "family item patches:number tokens:number pixels:number? values:number widths:number rotary:yes-or-no pairs:number since:version?"
        " until:version? source"
    ),
    "served_since": "has vllm:version? sglang:version? source",
    "window_pools": "has since:version until:version? ratio:number source",
    "nvml_symbols": "symbol driver:version torch_from:version required:yes-or-no source",
    "other_servers": "command title nearest source",
    "optimizers": "name names states:number? bytes_per_param:number? foreach:yes-or-no paged:yes-or-no in_backward:yes-or-no source",
    "packages": "name why source",
    "picture_programs": (
        "framework task:train-or-infer whole frozen caches_latents:yes-or-no caches_text:yes-or-no checkpointing:yes-or-no rank:number"
        " every_matrix:yes-or-no by_parts:yes-or-no source"
    ),
    "requirements": "package since:version until:version needs specifier binds:yes-or-no source",
    "scoring_models": "framework critic:critic reward:reward source",
    "secret_names": "word only_after? never_after? only_before? never_before? source",
    "shipped_files": (
        "name zero_stage:number? offload_optimizer? offload_params? zero_bucket:number? zero_bucket_auto? zero_overlap?"
        " fsdp? fsdp_version:number? fsdp_offload? world_size:number? source"
    ),
    "throughput": "name value:number source",
    "token_forms": "maker begins before? alphabet length:length source",
    "torch_releases": "torch:version cuda:version arch_list date? source",
    "stated_words": "of:label-or-program-or-sentence means words source",
    "towers": "kind modules family? source",
    "trained_modules": "written targets source",
    "training_methods": "name names? sequences:number reference:yes-or-no scores:yes-or-no critic:yes-or-no counted:yes-or-no source",
    "variables": "name group:memory-or-launcher source",
    "weight_formats": (
        "name names? bytes_per_param:number packed:yes-or-no packs_tower:yes-or-no unpacks:yes-or-no unties:yes-or-no rebuilds:yes-or-no"
        " keeps_unpacked:yes-or-no source"
    ),
}
"""The columns of each table in their order, each with what it holds; `?` where a cell may be empty."""
_NUMBER = r"-?\d+(?:\.\d+)?(?:e\d+)?"
_HOLDS: Mapping[str, str] = {
    "": r".*",
    "number": _NUMBER,
    "numbers": rf"{_NUMBER}(?:\|{_NUMBER})*",
    "version": r"\d+(?:\.\d+)*",
    "yes-or-no": "yes|no",
    "train-or-infer": "train|infer",
    "critic": "beside|one-pass|turns|head|where-colocated",
    "reward": "yes|no|where-told|where-colocated",
    "length": r"\d+(?:-\d+|\+)?",
    "layers": "all|half|eighth",
    "memory-or-launcher": "memory|launcher",
    "model-or-card": "model|card",
    "label-or-program-or-sentence": "label|program|sentence",
}


def table_files(root: Path) -> list[Path]:
    """Return the tables of a folder of rules, in a fixed order."""
    return sorted((root / "tables").glob("*.csv"))


def wrong_table(path: Path, fixes: Collection[str]) -> Iterator[tuple[int, Wrong]]:
    """Yield the line of each mistake in a table, and the mistake."""

    def wrong(why: str) -> Wrong:
        return Wrong(str(path), path.stem, why)

    if path.stem not in TABLES:
        yield 1, wrong(f"unknown table '{path.stem}'{did_you_mean(path.stem, TABLES)}")
        return
    columns = dict(_column(text) for text in TABLES[path.stem].split())
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        unknown = next((name for name in header if name not in columns), None)
        if unknown is not None:
            yield 1, wrong(f"unknown column '{unknown}'{did_you_mean(unknown, columns)}")
        elif header != list(columns):
            yield 1, wrong(f"the columns are {', '.join(columns)}")
        else:
            for row in reader:
                yield from ((reader.line_num, wrong(why)) for why in _row(row, columns, fixes))


def _column(text: str) -> tuple[str, tuple[str, bool]]:
    name, _, holds = text.removesuffix("?").partition(":")
    return name, (holds, text.endswith("?"))


def _row(row: list[str], columns: Mapping[str, tuple[str, bool]], fixes: Collection[str]) -> Iterator[str]:
    if len(row) != len(columns):
        yield f"{len(row)} cells in a table of {len(columns)} columns"
        return
    for cell, (name, (holds, may_be_empty)) in zip(row, columns.items()):
        if not cell:
            if not may_be_empty:
                yield f"{name} is empty"
        elif holds == "fix":
            if cell not in fixes:
                yield f"unknown fix '{cell}'{did_you_mean(cell, fixes)}"
        elif not re.fullmatch(_HOLDS[holds], cell, re.S):
            yield f"{name}: '{cell}' is not a {holds.replace('-or-', ' or ')}"
