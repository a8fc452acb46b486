"""Generating and serving: caches are exact arithmetic, budgets are those that the servers print."""

from __future__ import annotations

import pytest
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.memory import inference
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.serving import budget, sglang, vllm
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


def test_vllm_prints_this_budget() -> None:
    """vllm issue 12330: 39.50 GiB x 0.90, weights 14.96, outside torch 0.10, profile run 9.37 -> 11.12 GiB, 5691 blocks of 16 tokens."""
    found = vllm(int(39.5 * GIB), 0.9, int(14.96 * GIB), int(0.1 * GIB), int(9.37 * GIB), 131072)
    assert found.cache / GIB == pytest.approx(11.12, abs=0.01)
    assert found.tokens // 16 == pytest.approx(5691, abs=5)


def test_a_model_that_is_larger_than_its_share_leaves_no_token() -> None:
    assert sglang(24 * GIB, 0.8, 26 * GIB, 131072).tokens == 0


def test_weights_alone_can_be_more_than_a_card() -> None:
    assert estimate(run("zai-org/glm-4v-9b", task="infer", length=1)).low > 24 * GIB


def test_a_server_has_room_for_what_its_share_leaves() -> None:
    setup = run(task="infer", length=8192)
    small, large = (budget(setup, 24 * GIB, share) for share in (0.8, 0.9))
    assert large.cache - small.cache == pytest.approx(24 * GIB * 0.1, rel=1e-6)
    assert large.tokens == int(large.cache / inference.cache_per_token(setup))
    assert budget(setup, 24 * GIB, 0.9, batched=512).cache > large.cache
    assert budget(setup, 24 * GIB, 0.9, server="sglang").cache > large.cache
