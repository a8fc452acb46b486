"""States of a model over cards: the table of the ZeRO paper and DeepSpeed's own estimators."""

from __future__ import annotations

import pytest
from memory.runs import known, lora, run, zero
from msgspec.structs import replace

from oomdoctor.case.estimate import Layout
from oomdoctor.memory import optimizer, weights
from oomdoctor.memory import parameters as count
from oomdoctor.sizing.neighbour import neighbour

GB = 10**9


def states(stage: int, cards: int, params: int = 7_500_000_000) -> float:
    shape = neighbour(params, "of the paper")
    assert shape is not None
    setup = replace(run(layout=zero(stage, cards)), shape=shape)
    return (weights.weights(setup).bytes + optimizer.gradients(setup).bytes + optimizer.states(setup).bytes) / GB


@pytest.mark.parametrize(("stage", "gigabytes"), [
    pytest.param(0, 120, id="nothing is sharded"),
    pytest.param(1, 31.4, id="optimizer states"),
    pytest.param(2, 16.6, id="and gradients"),
    pytest.param(3, 1.9, id="and parameters"),
])  # fmt: skip
def test_the_table_of_the_zero_paper(stage: int, gigabytes: float) -> None:
    assert states(stage, 64) == pytest.approx(gigabytes, rel=0.02)


@pytest.mark.parametrize("cards", [2, 8, 64])
@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeeds_estimators_of_model_states(stage: int, cards: int) -> None:
    """estimate_zero2_model_states_mem_needs: 2P + 18P/N; estimate_zero3_...: 18P/N beside the largest module."""
    setup = run(layout=zero(stage, cards))
    params = count.total(setup.shape)
    temporary = optimizer.step_temporary(setup)
    assert temporary is not None
    found = weights.weights(setup).bytes + optimizer.gradients(setup).bytes + optimizer.states(setup).bytes + temporary.bytes
    whole = min(4 * params / cards, 4e9) if stage == 3 else 4 * params / cards
    expected = (2 * params + 14 * params / cards if stage == 2 else 16 * params / cards) + whole
    # ZeRO-2 shards gradients too: its estimator says 2P + (2 + 12 + 4) P/N.
    assert found == pytest.approx(expected, rel=1e-6)


def test_tensor_and_pipeline_ranks_hold_a_part_each() -> None:
    one = weights.weights(run("meta-llama/Llama-3.1-70B")).bytes
    assert weights.weights(run("meta-llama/Llama-3.1-70B", layout=Layout(cards=8, tensor=8))).bytes == pytest.approx(one / 8)
    staged = weights.weights(run("meta-llama/Llama-3.1-70B", layout=Layout(cards=4, pipeline=4))).bytes
    assert one / 4 < staged < one / 3


def test_lora_states_are_next_to_nothing_and_the_base_stays_whole_with_zero_2() -> None:
    setup = run(adapters=lora(), layout=zero(2, 8))
    assert weights.weights(setup).bytes == 2 * count.total(known("Qwen/Qwen2.5-7B"))
    assert optimizer.states(setup).bytes < 1 << 28


def test_offloaded_states_move_to_the_host() -> None:
    from oomdoctor.memory.estimate import estimate

    here = run(layout=zero(3, 4))
    away = replace(here, offload_optimizer=True, offload_params=True)
    assert estimate(away).expected < estimate(here).expected
    assert estimate(here).host == 0
    assert estimate(away).host > 16 * count.total(here.shape)


def test_fsdp_keeps_whole_gradients_between_micro_batches() -> None:
    setup = run(layout=Layout(engine="fsdp2", cards=8, stage=3))
    several = replace(setup, accumulation=4)
    assert optimizer.gradients(several).bytes == pytest.approx(8 * optimizer.gradients(setup).bytes, rel=1e-6)
