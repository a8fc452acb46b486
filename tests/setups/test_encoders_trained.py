"""What hears, sees, embeds and ranks: how long its samples are, and that only what writes has scores of words."""

from __future__ import annotations

from typing import Any

import pytest

import oomdoctor
from oomdoctor.case.estimate import Estimate
from oomdoctor.setups.words.question import read_question
from oomdoctor.units import GIB


def memory(model: str, settings: dict[str, Any], framework: str | None = None) -> Estimate:
    found = oomdoctor.estimate(model=model, settings=settings, framework=framework).estimate
    assert isinstance(found, Estimate)
    return found


def logits(found: Estimate) -> int:
    return max((term.bytes for phase in found.phases for term in phase.terms if term.name == "logits"), default=0)


@pytest.mark.parametrize(("model", "settings", "positions", "written"), [
    pytest.param("whisper-large-v3", {"finetuning": "full"}, 974, 448, id="half the layers hear 1500 positions, half write 448 tokens"),
    pytest.param("whisper-large-v3", {"finetuning": "full", "sequence_length": 225}, 862, 225, id="shorter texts"),
    pytest.param("whisper-large-v3-turbo", {"finetuning": "full"}, 1383, 448, id="four layers alone write"),
    pytest.param("google/vit-base-patch16-224", {"finetuning": "full"}, 197, None, id="196 patches and a token of the class"),
    pytest.param("bge-m3", {"finetuning": "full", "sequence_length": 512}, 512, None, id="a text encoder has the length that it is told"),
])  # fmt: skip
def test_a_sample_has_its_positions(model: str, settings: dict[str, Any], positions: int, written: int | None) -> None:
    setup = memory(model, settings).setup
    assert (setup.length, setup.written) == (positions, written)


@pytest.mark.parametrize(("settings", "framework", "scores"), [
    pytest.param({}, None, True, id="a decoder that is trained on text"),
    pytest.param({"method": "reranker"}, None, False, id="a reranker has one score for a pair"),
    pytest.param({"method": "embedding"}, None, False, id="an embedding model has none"),
    pytest.param({}, "sentence-transformers", False, id="nor has what sentence-transformers trains"),
    pytest.param({"method": "dpo"}, None, True, id="preferences are about words"),
])  # fmt: skip
def test_only_what_writes_has_scores_of_words(settings: dict[str, Any], framework: str | None, scores: bool) -> None:
    found = memory("Qwen3-Reranker-0.6B", {"finetuning": "full", "sequence_length": 1024, **settings}, framework)
    assert (logits(found) > 0.5 * GIB) is scores


def test_an_embedding_model_encodes_two_texts_for_each_sample() -> None:
    setup = memory("bge-m3", {"finetuning": "full", "method": "embedding", "sequence_length": 512}).setup
    assert setup.sequences == 2


@pytest.mark.parametrize(("text", "model", "method"), [
    pytest.param("will whisper-large-v3 full fine-tuning fit on 24 GB?", "openai/whisper-large-v3", None, id="a name without a size"),
    pytest.param("can I fine-tune bge-m3 as an embedding model on a 3090?", "BAAI/bge-m3", "embedding", id="an embedding model"),
    pytest.param("LoRA training of Qwen3-Reranker-4B on an A10", "Qwen3-Reranker-4B", "reranker", id="a reranker"),
    pytest.param("does PPO of llama-3.1-8b fit on 8 H100?", "llama-3.1-8b", "ppo", id="a way of training"),
    pytest.param("DPO or PPO for llama-3.1-8b on 8 H100?", "llama-3.1-8b", None, id="two ways are none"),
])  # fmt: skip
def test_words_say_what_is_trained(text: str, model: str, method: str | None) -> None:
    worded = read_question(text)
    assert (worded.model, worded.settings.method) == (model, method)
