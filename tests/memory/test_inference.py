"""Generating and serving: caches are exact arithmetic, budgets are those that the servers print."""

from __future__ import annotations

import pytest
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.memory import inference
from oomdoctor.memory.estimate import estimate, needed
from oomdoctor.units import GIB


@pytest.mark.parametrize(("model", "per_token"), [
    pytest.param("meta-llama/Meta-Llama-3-8B", 2 * 32 * 8 * 128 * 2, id="grouped queries"),
    pytest.param("deepseek-ai/DeepSeek-V3", 61 * 576 * 2, id="latent attention keeps 576 values for each token and layer"),
])  # fmt: skip
def test_the_cache_of_one_token(model: str, per_token: int) -> None:
    assert inference.cache_per_token(run(model, task="infer")) == per_token


def test_a_window_bounds_the_cache_of_its_layers() -> None:
    short, long = (inference.cache(run("google/gemma-3-27b-it", task="infer", length=length)) for length in (1024, 32768))
    assert long.bytes < 32 * short.bytes / 4
    assert long.high == pytest.approx(32 * short.bytes, rel=1e-6)


def test_an_8_bit_cache_is_half() -> None:
    setup = run(task="infer", length=8192)
    assert inference.cache(replace(setup, cache_bytes=1.0)).bytes * 2 == inference.cache(setup).bytes


@pytest.mark.parametrize(("model", "each"), [
    pytest.param("Qwen/Qwen2.5-7B", 3 * 18944 + 4 * 3584, id="gate and up are two matrices"),
    pytest.param("zai-org/GLM-4-32B-0414", 4 * 23040 + 4 * 6144, id="gate and up are one matrix"),
    pytest.param("EleutherAI/gpt-neox-20b", 2 * 24576 + 4 * 6144 + 44 * 2 * 6144, id="no gate, and a cache of views"),
    pytest.param("Qwen/Qwen3-30B-A3B", 3 * 768 // 16 + 6 * 2048, id="an expert after another gets its share of the tokens"),
    pytest.param("mistralai/Mixtral-8x7B-v0.1", 3 * 14336 // 4 + 6 * 4096, id="two of eight wide experts"),
])  # fmt: skip
def test_a_prompt_takes_what_was_counted(model: str, each: int) -> None:
    assert inference.prompt(run(model, task="infer", length=2)).bytes == 2 * each


@pytest.mark.parametrize(("model", "each"), [
    pytest.param("Qwen/Qwen3-30B-A3B", 4 * 8 * 2048 + 4 * 2048, id="outputs of eight experts are wider than their middles"),
    pytest.param("mistralai/Mixtral-8x7B-v0.1", 4 * 2 * 14336 + 2 * 4096 + 4 * 4096, id="two wide experts"),
])  # fmt: skip
def test_experts_may_all_be_computed_at_once(model: str, each: int) -> None:
    assert inference.prompt(run(model, task="infer", length=2, prompt_logits=False)).high == pytest.approx(1.3 * 2 * each, abs=4)


def test_eager_attention_of_a_prompt_goes_through_all_pairs_of_tokens() -> None:
    setup = run(task="infer", length=8192, eager_attention=True)
    tokens = 6144
    assert inference.prompt(setup).bytes == pytest.approx(tokens * (tokens * (10 * 28 + 2) + 2 * 6 * 3584))
    short = replace(setup, length=64)
    assert inference.prompt(short).bytes == inference.prompt(replace(short, eager_attention=False)).bytes


def test_answers_are_short() -> None:
    assert [inference.prompted(run(task="infer", length=length)) for length in (1000, 4096, 32768)] == [500, 2048, 30720]
    assert inference.prompted(run(length=4096)) == 4096


def test_old_versions_have_the_logits_of_a_whole_prompt() -> None:
    setup = run(task="infer", length=32768)
    old, unknown, new = (inference.prompt(replace(setup, prompt_logits=said)) for said in (True, None, False))
    assert old.bytes == 6 * 152064 * 30720
    assert new.bytes == unknown.bytes < old.bytes
    assert new.high < unknown.high


def test_whether_it_fits_allows_for_old_versions() -> None:
    setup = run(task="infer", length=32768)
    new, unknown, old = (needed(replace(setup, prompt_logits=said)) for said in (False, None, True))
    assert new.expected == unknown.expected < old.expected
    assert new.high < unknown.high
    assert unknown.high == old.expected


def test_a_cache_grows_after_the_prompt() -> None:
    phases = {phase.name: {term.name for term in phase.terms} for phase in estimate(run(task="infer", counter="max_reserved")).phases}
    assert "allocator" in phases["generation"]
    assert "allocator" not in phases["prompt"]


def test_weights_alone_can_be_more_than_a_card() -> None:
    assert estimate(run("zai-org/glm-4v-9b", task="infer", length=1)).low > 24 * GIB
