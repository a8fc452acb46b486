"""What a form can offer before Python has started: the names of models, cards, frameworks, servers and optimizers, common ones first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.json import encode

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.records.server import SERVERS
from oomdoctor.knowledge.tables.cards import commonest_card
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.models import model_rows

COMMON_CARDS = (
    "GeForce RTX 4090", "GeForce RTX 3090", "GeForce RTX 5090", "A100-SXM4-80GB", "H100 80GB HBM3", "A100-SXM4-40GB",
    "GeForce RTX 3060 12GB", "GeForce RTX 4060", "GeForce RTX 4080", "Tesla T4", "L40S", "A10", "L4", "RTX A6000",
    "Tesla V100-SXM2-32GB", "Tesla V100-SXM2-16GB", "H200", "B200", "AMD Instinct MI300X", "GeForce RTX 4070",
    "GeForce RTX 3080 10GB", "GeForce RTX 5080", "GeForce RTX 5070", "RTX 6000 Ada Generation", "Apple M4 Max 64GB",
)  # fmt: skip
COMMON_MODELS = (
    "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-7B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.3-70B-Instruct",
    "mistralai/Mistral-7B-v0.3", "google/gemma-3-12b-it", "google/gemma-3-27b-it", "google/gemma-3-4b-it", "Qwen/Qwen3-4B",
    "Qwen/Qwen3-14B", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen2.5-14B", "Qwen/Qwen2.5-32B", "Qwen/Qwen2.5-72B", "Qwen/Qwen2.5-VL-7B-Instruct",
    "meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.2-1B", "meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-3.1-70B", "openai/gpt-oss-20b",
    "openai/gpt-oss-120b", "meta-llama/Llama-2-7b-hf", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-ai/DeepSeek-V3",
    "microsoft/phi-4",
)  # fmt: skip
"""What stands first in a list, as most people ask about it; nothing else follows from it."""
_UNNAMED = "unknown"


def choices() -> bytes:
    """Return the names as JSON."""
    pack = load_pack()
    trainers = sorted(
        (each for each in pack.records(FRAMEWORKS) if each.training and each.framework != _UNNAMED), key=lambda each: each.rank
    )
    others = {row.name for row in model_rows()} - set(COMMON_MODELS)
    return encode(
        {
            "models": [*COMMON_MODELS, *sorted(others, key=lambda name: (len(name), name.lower()))],
            "cards": list(cards()),
            "frameworks": [(each.framework, each.title) for each in trainers],
            "servers": sorted(((each.server, each.title) for each in pack.records(SERVERS)), key=lambda each: each[0] != "vllm"),
            "optimizers": [row["name"] for row in table("optimizers")],
        }
    )


def cards() -> Iterator[tuple[str, int]]:
    """Yield each card by each of its names, with its size in GB: one entry a size, and each is a name that the library knows."""
    offered = dict(_offered())
    for name in (*COMMON_CARDS, *(name for name in offered if name not in COMMON_CARDS)):
        yield name, offered[name]


def _offered() -> Iterator[tuple[str, int]]:
    for row in table("cards"):
        for name in dict.fromkeys(name.removeprefix("NVIDIA ") for name in row["names"].split("|")):
            for size in (int(float(size)) for size in row["memory_gb"].split("|") if size):
                known = ((written, commonest_card(written)) for written in (name, f"{name} {size}GB"))
                named = (written for written, card in known if card is not None and card.gigabytes == size and not card.others)
                yield from ((written, size) for written in islice(named, 1))
