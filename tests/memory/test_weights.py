"""The formats of weights: what is packed, what stays in 16 bit, and what is there twice."""

from __future__ import annotations

import pytest
from memory.runs import known, lora, run
from msgspec.structs import replace

from oomdoctor.case.estimate import Layout
from oomdoctor.memory import parameters as count
from oomdoctor.memory.weights import stored, weights, working_copies
from oomdoctor.units import GIB


@pytest.mark.parametrize(("name", "width"), [
    pytest.param("fp32", 4.0, id="fp32"),
    pytest.param("bf16", 2.0, id="bf16"),
])  # fmt: skip
def test_a_plain_format_is_a_product(name: str, width: float) -> None:
    assert stored(run(weights=name)) == count.total(known("Qwen/Qwen2.5-7B")) * width


def test_four_bits_pack_the_matrices_of_the_layers_only() -> None:
    """QLoRA: a Llama 2 7B takes 3.2 GiB of packed matrices, and 0.5 GiB of embeddings that stay 16-bit."""
    shape = known("meta-llama/Llama-2-7b-hf")
    found = stored(run("meta-llama/Llama-2-7b-hf", weights="nf4-dq"))
    assert found == pytest.approx(count.linears(shape) * 0.5159 + 2 * (count.total(shape) - count.linears(shape)))
    assert 3.5 < found / GIB < 3.7


def test_embeddings_decide_small_models_in_four_bits() -> None:
    small = run("Qwen/Qwen2.5-0.5B", weights="nf4")
    assert stored(small) > 1.6 * count.total(small.shape) / 2


def test_the_published_8_bit_checkpoints_of_tied_models_have_a_head_of_their_own() -> None:
    tied = run("Qwen/Qwen3-1.7B", weights="fp8")
    assert stored(tied) - stored(run("Qwen/Qwen3-1.7B", weights="gptq-int8")) > 0.4 * GIB


def test_a_frozen_packed_base_may_be_cast_where_it_is_not_packed() -> None:
    term = weights(run(weights="nf4", adapters=lora()))
    assert term.high - term.bytes > 2 * GIB
    assert weights(run(weights="gptq-int4", adapters=lora())).high < 1.05 * weights(run(weights="gptq-int4", adapters=lora())).bytes


def test_autocast_keeps_16_bit_copies_of_fp32_weights() -> None:
    copies = working_copies(run(weights="fp32"))
    assert copies is not None
    assert copies.bytes == pytest.approx(2 * count.total(known("Qwen/Qwen2.5-7B")), rel=0.1)
    assert working_copies(run()) is None


def test_what_is_gathered_is_no_larger_than_needed() -> None:
    gathered = working_copies(run(layout=Layout(engine="fsdp2", cards=8, stage=3)))
    assert gathered is not None
    assert gathered.bytes < 0.5 * stored(run())


def test_offloaded_weights_leave_the_card() -> None:
    assert weights(replace(run(), offload_params=True)).bytes == 0
