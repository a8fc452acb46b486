"""Ollama's placement of layers: how many land on the card, and what to set so that more do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oomdoctor
from oomdoctor.api.results import RunEstimate
from oomdoctor.case.estimate import Estimate
from oomdoctor.setups.words.question import read_question


def asked(settings: dict[str, Any], framework: str = "ollama") -> RunEstimate:
    return oomdoctor.estimate(model="llama3.1:8b", framework=framework, gpu="8GB", settings=settings)


def layers(run: RunEstimate) -> int | None:
    assert isinstance(run.estimate, Estimate)
    assert run.estimate.setup.ggml is not None
    return run.estimate.setup.ggml.layers


def test_a_short_context_leaves_all_layers_on_the_card() -> None:
    run = asked({"max_model_len": 4096})
    assert layers(run) is None
    assert not [other for other in run.otherwise if other.assumption == "gpu_layers"]


def test_a_long_one_says_what_to_set() -> None:
    run = asked({"max_model_len": 32768})
    assert 20 <= (layers(run) or 0) < 33
    sets = dict(pair for other in run.otherwise if other.assumption == "gpu_layers" for pair in other.sets)
    assert sets.keys() == {"max_model_len", "kv_cache_dtype"}
    assert layers(asked({"max_model_len": int(str(sets["max_model_len"]))})) is None
    assert any("num_gpu" in each.text.en for each in run.estimate.assumptions)


@pytest.mark.parametrize(("framework", "more"), [
    pytest.param("ollama", True, id="one type for keys and values"),
    pytest.param("llama.cpp", False, id="llama.cpp has a type for each"),
])  # fmt: skip
def test_the_type_of_the_cache_is_that_of_both(framework: str, more: bool) -> None:
    keys = {"max_model_len": 32768, "kv_cache_dtype": "q8_0"}
    both = {**keys, "value_cache_dtype": "q8_0"}
    assert (layers(asked(keys, framework)) == layers(asked(both, framework))) is more


def test_every_door_gives_one_answer(tmp_path: Path) -> None:
    compose = tmp_path / "compose.yaml"
    compose.write_text(
        "services:\n  ollama:\n    image: ollama/ollama\n    environment:\n"
        "      - OLLAMA_CONTEXT_LENGTH=32768\n      - OLLAMA_KV_CACHE_TYPE=q8_0\n",
        encoding="utf-8",
    )
    options = asked({"max_model_len": 32768, "kv_cache_dtype": "q8_0"})
    config = oomdoctor.estimate(compose, framework="ollama", model="llama3.1:8b", gpu="8GB")
    worded = read_question("ollama llama3.1:8b num_ctx 32768 with q8_0 kv cache on 8 GB")
    words = oomdoctor.estimate(model=worded.model, gpu=worded.gpu, framework=worded.framework, settings=worded.settings, serve=True)
    assert layers(options) == layers(config) == layers(words)
