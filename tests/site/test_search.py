"""Cards and models are found as people write them: what the form offers is what was meant, and the library knows it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from site_build.choices import choices

from oomdoctor.knowledge.tables.cards import commonest_card
from oomdoctor.knowledge.tables.models import model_row

NODE = shutil.which("node")
OFFERED = json.loads(choices())
CARDS = [[name, f"{size} GB"] for name, size in OFFERED["cards"]]
MODELS = [[name] for name in OFFERED["models"]]
needs_node = pytest.mark.skipif(NODE is None, reason="no node here")


def suggested(offered: list[list[str]], typed: list[str]) -> list[list[str]]:
    """Return what the page suggests for each text, the best first."""
    asked = json.dumps({"choices": offered, "typed": typed})
    script = str(Path(__file__).with_name("matching.mjs"))
    done = subprocess.run([str(NODE), script], input=asked, capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


FIRST: dict[str, tuple[list[list[str]], dict[str, str]]] = {
    "cards": (
        CARDS,
        {
            "": "GeForce RTX 4090", "4090": "GeForce RTX 4090", "rtx4090": "GeForce RTX 4090", "RTX 4090 24G": "GeForce RTX 4090",
            "3090ti": "GeForce RTX 3090 Ti", "4060ti 16g": "GeForce RTX 4060 Ti 16GB", "a100": "A100-SXM4-80GB", "a100 40g": "A100-SXM4-40GB",
            "a100 pcie 80": "A100 80GB PCIe", "v100 32gb": "Tesla V100-SXM2-32GB", "t4": "Tesla T4", "l4": "L4", "l40": "L40", "a10": "A10",
            "6000 ada": "RTX 6000 Ada Generation", "mi300x": "AMD Instinct MI300X", "7900xtx": "AMD Radeon RX 7900 XTX",
        },
    ),
    "models": (
        MODELS,
        {
            "": "Qwen/Qwen3-8B", "qwen3 8b": "Qwen/Qwen3-8B", "Qwen3-32B": "Qwen/Qwen3-32B", "llama3.1 8b": "meta-llama/Llama-3.1-8B",
            "llama 2 7b": "meta-llama/Llama-2-7b-hf", "gemma3": "google/gemma-3-12b-it", "mistral 7b": "mistralai/Mistral-7B-v0.3",
            "opt 13b": "facebook/opt-13b", "yi 34b": "01-ai/Yi-34B", "deepseek v2 lite": "deepseek-ai/DeepSeek-V2-Lite", "phi4": "microsoft/phi-4",
        },
    ),
}  # fmt: skip


@needs_node
@pytest.mark.parametrize("what", FIRST)
def test_what_was_meant_is_suggested_first(what: str) -> None:
    offered, meant = FIRST[what]
    assert {text: names[0] for text, names in zip(meant, suggested(offered, list(meant)))} == meant


@needs_node
def test_a_word_that_stands_in_no_name_has_no_suggestion() -> None:
    assert suggested(CARDS, ["potato", "rtx 9999"]) == [[], []]


@pytest.mark.parametrize(
    ("offered", "known"), [pytest.param(CARDS, commonest_card, id="cards"), pytest.param(MODELS, model_row, id="models")]
)
def test_all_that_is_offered_is_known_to_the_library(offered: list[list[str]], known: Any) -> None:
    assert [name for name, *_ in offered if known(name) is None] == []
    assert len({name for name, *_ in offered}) == len(offered)


def test_a_card_is_offered_with_the_size_that_the_library_takes_it_for() -> None:
    taken = {name: card.gigabytes for name, _ in OFFERED["cards"] if (card := commonest_card(name))}
    assert taken == dict(OFFERED["cards"])
