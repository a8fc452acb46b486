"""Generating and serving: caches are exact arithmetic, budgets are those that the servers print."""

from __future__ import annotations

import pytest
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.memory import inference
from oomdoctor.memory.estimate import estimate
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


def test_weights_alone_can_be_more_than_a_card() -> None:
    assert estimate(run("zai-org/glm-4v-9b", task="infer", length=1)).low > 24 * GIB
