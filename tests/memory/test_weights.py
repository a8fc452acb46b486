"""The formats of weights: what is packed, what stays in 16 bit, and what is there twice."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import known, lora, run
from msgspec.structs import replace

from oomdoctor.case.setup import Layout
from oomdoctor.memory.activations import boundary
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model.gathered_weights import working_copies
from oomdoctor.memory.model.weights import stored, weights
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
    found = stored(run("meta-llama/Llama-2-7b-hf", weights="nf4-dq", framework="llamafactory"))
    assert found == pytest.approx(count.linears(shape) * 0.5159 + 2 * (count.total(shape) - count.linears(shape)))
    assert 3.5 < found / GIB < 3.7


def test_embeddings_decide_small_models_in_four_bits() -> None:
    small = run("Qwen/Qwen2.5-0.5B", weights="nf4")
    assert stored(small) > 1.6 * count.total(small.shape) / 2


def test_the_published_8_bit_checkpoints_of_tied_models_have_a_head_of_their_own() -> None:
    tied = run("Qwen/Qwen3-1.7B", weights="fp8")
    assert stored(tied) - stored(run("Qwen/Qwen3-1.7B", weights="gptq-int8")) > 0.4 * GIB


@pytest.mark.parametrize(("changes", "width"), [
    pytest.param({}, 4, id="peft's preparation makes embedding, head and norms fp32"),
    pytest.param({"framework": "llamafactory"}, 2, id="a framework that does not call it"),
    pytest.param({"weights": "gptq-int4"}, 2, id="GPTQ is left as it is"),
    pytest.param({"layout": Layout(engine="fsdp1", cards=2, stage=3)}, 2, id="packed weights in shards have one type"),
    pytest.param({"task": "infer"}, 2, id="nothing is trained"),
])  # fmt: skip
def test_what_a_packed_base_leaves_as_it_was(changes: dict[str, Any], width: int) -> None:
    setup = run(**{"weights": "nf4", "adapters": lora(), **changes})
    packed = count.linears(setup.shape)
    assert stored(setup) == pytest.approx(packed * setup.weights.bytes_per_param + (count.total(setup.shape) - packed) * width)


def test_either_may_be_true_of_a_packed_base() -> None:
    cast, plain = (weights(run(weights="nf4", adapters=lora(), framework=name)) for name in ("transformers", "llamafactory"))
    assert cast.low < plain.bytes < cast.bytes < plain.high


def test_what_flows_between_the_layers_is_fp32_too() -> None:
    cast, plain = (boundary(run(weights="nf4", adapters=lora(), framework=name)) for name in ("transformers", "llamafactory"))
    assert cast == 2 * plain


@pytest.mark.parametrize(("weights", "checkpointing", "layers"), [
    pytest.param("gptq-int4", "full", 1, id="GPTQ keeps the unpacked matrices of the layer that is computed again"),
    pytest.param("gptq-int4", "none", 28, id="and of all layers where nothing is computed again"),
])  # fmt: skip
def test_products_with_unpacked_matrices_keep_them(weights: str, checkpointing: Any, layers: int) -> None:
    setup = run(weights=weights, adapters=lora(), checkpointing=checkpointing)
    copies = working_copies(setup)
    assert copies is not None
    unpacking = 3 * count.largest_linear(setup.shape)
    assert copies.bytes == pytest.approx(2 * count.linears(setup.shape) * layers / 28 + unpacking)


@pytest.mark.parametrize(("weights", "ready"), [
    pytest.param("gptq-int4", 2048, id="GPTQ has a buffer for 2,048 tokens beside it"),
    pytest.param("awq-int4", 0, id="AWQ"),
])  # fmt: skip
def test_a_prompt_goes_through_one_matrix_in_16_bit_at_a_time(weights: str, ready: int) -> None:
    copies = working_copies(run(weights=weights, task="infer"))
    assert copies is not None
    assert copies.bytes == 2 * (count.largest_linear(known("Qwen/Qwen2.5-7B")) + ready * 18944)
    assert working_copies(run(weights="fp8", task="infer")) is None


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
