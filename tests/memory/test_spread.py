"""What a tensor parallel card has beside its even share of the weights, counted by hand."""

from __future__ import annotations

import pytest
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.case.setup import Layout
from oomdoctor.memory.model.spread import beside_a_share
from oomdoctor.setups.weights_said import own_weights

LATENT = 61 * 7168 * (1536 + 512 + 64)
"""q_a_proj and kv_a_proj_with_mqa of DeepSeek-V3, all layers."""
ROUTERS = 58 * 256 * 7169 + 61 * (2 * 7168 + 1536 + 512)
"""Routers with their biases, and norms."""
UNPACKED = 61 * 512 * 128 * 256
NORMS = 2 * 3584 + 3584 + 2 * 512
"""With the biases of Qwen2.5-7B, a layer."""


@pytest.mark.parametrize(("model", "weights", "cards", "expected"), [
    pytest.param("deepseek-ai/DeepSeek-V3", "bf16", 1, 0, id="one card has everything once"),
    pytest.param("deepseek-ai/DeepSeek-V3", "bf16", 8, 2 * (LATENT + ROUTERS) * 7 / 8, id="the narrow middle and routers are on every card"),
    pytest.param("deepseek-ai/DeepSeek-V3", "fp8", 8, (LATENT + 2 * ROUTERS) * 7 / 8 + 2 * UNPACKED / 8, id="what goes up again is unpacked, and divided"),
    pytest.param("Qwen/Qwen2.5-7B", "bf16", 4, 2 * 28 * NORMS * 3 / 4, id="four heads of keys for four cards: norms alone"),
    pytest.param("Qwen/Qwen2.5-7B", "bf16", 8, 2 * 28 * (NORMS * 7 / 8 + 2 * 512 * 3584 / 8), id="four heads for eight cards: each on two"),
])  # fmt: skip
def test_what_every_card_has(model: str, weights: str, cards: int, expected: float) -> None:
    setup = run(model, weights=weights, task="infer", layout=Layout(cards=cards, tensor=cards))
    assert beside_a_share(setup) == pytest.approx(expected, rel=0.002, abs=1)


def test_copies_of_the_attention_are_on_fewer_cards_each_and_the_embedding_on_every_card() -> None:
    own = run("Qwen/Qwen2.5-7B", task="infer", layout=Layout(cards=4, tensor=4))
    copied = replace(own, layout=replace(own.layout, replicas=2))
    attention = 28 * (2 * 3584 * 3584 + 2 * 512 * 3584)
    more = 2 * (attention * (1 / 2 - 1 / 4) + 152064 * 3584 * 3 / 4)
    assert beside_a_share(copied) - beside_a_share(own) == pytest.approx(more)


def test_attention_that_a_checkpoint_leaves_alone_is_counted_in_16_bit() -> None:
    whole = run("nvidia/GLM-5.2-NVFP4", task="infer", layout=Layout(cards=4, tensor=4))
    packed = replace(whole, weights=own_weights(whole.shape) or whole.weights)
    assert packed.weights.attention_bytes == 2
    assert beside_a_share(packed) == beside_a_share(whole)


@pytest.mark.parametrize(("cards", "times"), [
    pytest.param(1, 3072 / 2880, id="longer rows"),
    pytest.param(4, 3072 / 2880 * 768 / 720, id="and on each card more of them"),
])  # fmt: skip
def test_experts_in_mxfp4_are_filled_up_on_each_card(cards: int, times: float) -> None:
    found = own_weights(run("openai/gpt-oss-20b").shape, cards)
    assert found is not None
    assert found.bytes_per_param == pytest.approx(times * (0.5 + 1 / 32))
