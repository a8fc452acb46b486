"""What a layer keeps, against counts from the programs and published coefficients."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import lora, run, zero
from msgspec.structs import replace

from oomdoctor.case.setup import Adapters
from oomdoctor.case.shape import Shape
from oomdoctor.memory import activations
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.model.trained import adapter_params

COUNTED = Shape(name="counted", hidden=512, layers=4, heads=8, kv_heads=2, head=64, intermediate=1408, vocab=1000)
"""The Llama whose saved tensors were counted (torch.autograd.graph.saved_tensors_hooks, transformers 5.23)."""


def bytes_per_token(**changes: Any) -> float:
    setup = replace(run(checkpointing="none", **changes), shape=COUNTED, batch=1, length=256)
    return activations.layer(setup) / 256


@pytest.mark.parametrize(("counted", "changes"), [
    pytest.param(22_056, {}, id="full training in bf16"),
    # Of the 21,424 counted, 512 x 2 x 3 are the masks of dropout: four bytes an element on the CPU, one on a card.
    pytest.param(21_424 - 2 * 512 * 3, {"adapters": lora(8, "q v")}, id="LoRA on q and v under autocast"),
])  # fmt: skip
def test_a_layer_keeps_what_was_counted(counted: int, changes: dict[str, object]) -> None:
    assert bytes_per_token(**changes) == pytest.approx(counted, rel=0.01)


def test_norms_of_queries_and_keys_are_counted() -> None:
    plain = replace(COUNTED, qk_norm=False)
    normed = replace(COUNTED, qk_norm=True)
    extra = [activations.layer(replace(run(checkpointing="none"), shape=one, length=1)) for one in (plain, normed)]
    # 25,936 were counted for the Qwen 3 of this size, 22,056 for the Llama.
    assert extra[1] - extra[0] == pytest.approx(25_936 - 22_056, rel=0.02)


@pytest.mark.parametrize(("model", "copies"), [
    pytest.param("meta-llama/Llama-3.1-8B", 28.0, id="Llama 3.1 8B"),
    pytest.param("mistralai/Mistral-7B-v0.1", 28.0, id="Mistral 7B"),
    pytest.param("Qwen/Qwen3-8B", 29.8, id="Qwen3 8B"),
    pytest.param("Qwen/Qwen3-4B", 38.0, id="Qwen3 4B"),
])  # fmt: skip
def test_the_published_copies_of_the_hidden_states(model: str, copies: float) -> None:
    """stas00/ml-engineering, training/performance: with keys and values repeated for every head, and the residual."""
    setup = run(model, checkpointing="none", framework="torchtune", length=1)
    hidden = 2 * setup.shape.hidden
    assert activations.layer(setup) / hidden == pytest.approx(copies - 2, abs=0.6)


def test_checkpointing_keeps_the_inputs_of_layers_only() -> None:
    setup = run(batch=2, length=4096)
    assert activations.kept(setup).bytes == 28 * 2 * 4096 * 2 * 3584


def test_eager_attention_is_quadratic() -> None:
    def scores(length: int) -> float:
        eager, flash = (activations.layer(run("meta-llama/Llama-2-7b-hf", length=length, eager_attention=on)) for on in (True, False))
        return eager - flash

    assert scores(8192) == pytest.approx(4 * scores(4096))


def test_eager_attention_has_wide_gradients_too() -> None:
    eager, flash = (activations.gradients_inside(run(length=4096, eager_attention=on)) for on in (True, False))
    assert eager == 4096 * 8 * 28 * 4096 > flash


def test_a_frozen_tower_keeps_nothing_and_a_trained_one_more_than_the_text() -> None:
    """GLM-4V-9B: LoRA that matches the tower's query_key_value costs 63 layers x 6401 patches."""
    frozen = run("zai-org/glm-4v-9b", adapters=lora(), length=2624)
    trained = replace(frozen, tower_trained=True)
    assert activations.tower(frozen) is None
    assert estimate(trained).expected - estimate(frozen).expected > 30 << 30


def test_whole_trained_layers_count_as_trained() -> None:
    freeze = run(adapters=Adapters(rank=0, targets=frozenset(), blocks=2))
    assert estimate(run()).expected > estimate(freeze).expected


def test_selective_checkpointing_keeps_every_second_product() -> None:
    """Llama-3.1-8B: q, v, gate and down, what attention gives, and the layer's input."""
    one = run("meta-llama/Llama-3.1-8B", checkpointing="selective", batch=1, length=1)
    assert activations.saved_by_choice(one) == 2 * (4096 + 1024 + 14336 + 4096 + 4096 + 4096)
    assert activations.saved_by_choice(one) < activations.layer(one)


def test_samples_that_are_cut_may_all_be_shorter() -> None:
    even, uneven = (activations.kept(run(even_lengths=value)) for value in (True, False))
    assert even.bytes == uneven.bytes
    assert uneven.low == pytest.approx(even.low / 2, rel=1e-6)


@pytest.mark.parametrize(("model", "counted"), [
    # Live tensors of one token after the forward pass of transformers 5.23, one layer more against one layer less.
    pytest.param("Qwen/Qwen3-30B-A3B", 2 * 8 * 2 * 2048, id="eight experts for a token"),
    pytest.param("mistralai/Mixtral-8x7B-v0.1", 2 * 2 * 2 * 4096, id="two experts"),
])  # fmt: skip
def test_trained_experts_keep_what_they_were_given_and_gave(model: str, counted: int) -> None:
    trained = run(model, checkpointing="none", length=1)
    experts = trained.shape.experts
    assert experts is not None
    twice = replace(trained.shape, experts=replace(experts, active=2 * experts.active, intermediate=experts.intermediate // 2))
    assert activations.layer(replace(trained, shape=twice)) - activations.layer(trained) == counted


def test_one_matrix_for_queries_keys_and_values_has_one_adapter() -> None:
    apart = run("Qwen/Qwen-7B", adapters=lora(8, "q k v"), checkpointing="none")
    assert apart.shape.fused_qkv
    assert activations.layer(apart) == activations.layer(replace(apart, adapters=lora(8, "qkv")))
    assert adapter_params(apart.shape, lora(8, "q k v")) == 32 * 8 * (4096 + 3 * 4096)


@pytest.mark.parametrize(("name", "wider"), [
    pytest.param("gelu_new", 14 - 2, id="written out in Python, under autocast"),
    pytest.param("gelu", 0, id="fused"),
    pytest.param("gelu_pytorch_tanh", 0, id="fused, with tanh"),
    pytest.param("no-such-function", 0, id="unknown: taken for fused"),
])  # fmt: skip
def test_an_activation_keeps_what_its_code_makes(name: str, wider: int) -> None:
    phi = run("microsoft/phi-2", checkpointing="none", length=1)
    plain, own = (activations.layer(replace(phi, shape=replace(phi.shape, activation=word))) for word in ("", name))
    assert own - plain == wider * phi.shape.intermediate


def test_fp32_weights_under_autocast_make_fp32_hidden_states() -> None:
    """Each matrix casts its input for itself: five copies for a Llama's layer in the place of two."""
    half, whole = (run("meta-llama/Llama-2-7b-hf", weights=name, checkpointing="none", length=1) for name in ("bf16", "fp32"))
    assert activations.layer(whole) - activations.layer(half) == 4096 * (2 * 2 + 3 * 2)
    assert activations.boundary(whole) == 2 * activations.boundary(half)


def test_deepspeed_runs_without_autocast() -> None:
    whole = run("meta-llama/Llama-2-7b-hf", weights="fp32", checkpointing="none", length=1)
    assert activations.layer(replace(whole, layout=zero(2, 4))) < activations.layer(whole)
