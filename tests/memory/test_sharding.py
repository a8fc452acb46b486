"""States of a model over cards: the table of the ZeRO paper and DeepSpeed's own estimators."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import known, lora, run, zero
from msgspec.structs import replace

from oomdoctor.case.setup import Layout
from oomdoctor.memory import optimizer
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model import weights
from oomdoctor.memory.model.gathered_weights import working_copies
from oomdoctor.setups.nearest_model import nearest_model

GB = 10**9


def states(stage: int, cards: int, params: int = 7_500_000_000) -> float:
    shape = nearest_model(params, "of the paper")
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


def step(stage: int, cards: int) -> int:
    """What is there in the step, of model states alone."""
    setup = run(layout=zero(stage, cards))
    temporary = optimizer.step_temporary(setup)
    assert temporary is not None
    return weights.weights(setup).bytes + optimizer.gradients(setup).bytes + optimizer.states(setup).bytes + temporary.bytes


def test_deepspeeds_estimate_of_stage_2() -> None:
    """estimate_zero2_model_states_mem_needs(7_615_616_512, 8, 1, False, 1.5) of DeepSpeed 0.19.8 is (365549592576, 32366370176)."""
    assert step(2, 8) == pytest.approx(32_366_370_176, rel=1e-9)


def test_deepspeeds_estimate_of_stage_3() -> None:
    """estimate_zero3_model_states_mem_needs of DeepSpeed 0.19.8: 18 bytes for each parameter over the cards, beside its largest module."""
    assert step(3, 8) + 4 * 545_000_000 == pytest.approx(19_315_137_152, rel=1e-9)


@pytest.mark.parametrize("cards", [8, 16, 64])
def test_the_installed_deepspeed_estimates_the_same(cards: int) -> None:
    pytest.importorskip("deepspeed")
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    params = count.total(known("Qwen/Qwen2.5-7B"))
    assert step(2, cards) == pytest.approx(estimate_zero2_model_states_mem_needs(params, cards, 1, False, 1.5)[1], rel=1e-9)
    assert step(3, cards) == pytest.approx(
        estimate_zero3_model_states_mem_needs(params, 0, cards, 1, False, False, False, 1.5)[1], rel=1e-9
    )


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


def test_fsdp_that_syncs_each_batch_keeps_its_share() -> None:
    once, often = (run(layout=Layout(engine="fsdp1", cards=8, stage=3, syncs=True), accumulation=steps) for steps in (1, 4))
    assert optimizer.gradients(often).bytes == optimizer.gradients(once).bytes


def test_fsdp_keeps_whole_gradients_between_micro_batches() -> None:
    setup = run(layout=Layout(engine="fsdp1", cards=8, stage=3))
    several = replace(setup, accumulation=4)
    assert optimizer.gradients(several).bytes == pytest.approx(8 * optimizer.gradients(setup).bytes, rel=1e-6)


def test_modules_of_fsdp2_have_nothing_that_leaves_the_exchange_out() -> None:
    setup = run(layout=Layout(engine="fsdp2", cards=8, stage=3))
    assert optimizer.gradients(replace(setup, accumulation=4)).bytes == optimizer.gradients(setup).bytes


@pytest.mark.parametrize("cards", [1, 2, 8])
def test_expert_parallel_cards_divide_the_routed_experts(cards: int) -> None:
    """Qwen3-30B-A3B: 29 of its 30.5 billion parameters are routed experts."""
    setup = run("Qwen/Qwen3-30B-A3B", layout=Layout(engine="deepspeed", cards=8, stage=1, expert=cards))
    routed = count.routed(setup.shape)
    assert 28.9e9 < routed < 29.1e9
    assert weights.weights(setup).bytes == pytest.approx(2 * (count.total(setup.shape) - routed + routed / cards), rel=1e-6)
    assert optimizer.gradients(setup).bytes == pytest.approx(weights.weights(setup).bytes, rel=1e-3)


def test_gradients_of_megatron_are_fp32() -> None:
    narrow, wide = (run(layout=Layout(engine="deepspeed", cards=8, stage=1, wide_gradients=is_wide)) for is_wide in (False, True))
    assert optimizer.gradients(wide).bytes == 2 * optimizer.gradients(narrow).bytes


@pytest.mark.parametrize(("changes", "elements"), [
    pytest.param({"bucket": 500_000_000, "overlaps": False}, 500_000_000, id="as the config says"),
    pytest.param({"bucket": 500_000_000, "overlaps": True}, 1_000_000_000, id="twice where communication overlaps"),
    pytest.param({}, 200_000_000, id="between what copied configs have, where it is not known"),
    pytest.param({"stage": 3}, 3584**2, id="hidden x hidden with ZeRO-3, as transformers fills auto"),
])  # fmt: skip
def test_a_bucket_of_deepspeed_is_whole_whatever_is_trained(changes: dict[str, Any], elements: int) -> None:
    found = optimizer.buckets(run(adapters=lora(), layout=replace(zero(2, 8), **changes)))
    assert found is not None
    assert found.bytes == 2 * elements
    assert found.low <= 2 * elements <= found.high


def test_a_known_bucket_has_a_narrow_range() -> None:
    known_one = optimizer.buckets(run(layout=replace(zero(2, 8), bucket=500_000_000, overlaps=False)))
    unknown = optimizer.buckets(run(layout=zero(2, 8)))
    assert known_one is not None and unknown is not None
    assert known_one.high - known_one.low < 0.1 * known_one.bytes
    assert unknown.high >= 2 * 2 * 500_000_000


@pytest.mark.parametrize(("stage", "buffers"), [
    pytest.param(2, 2, id="stage 2 has two where it overlaps"), pytest.param(3, 1, id="stage 3 has one"),
])  # fmt: skip
def test_how_many_buckets_there_are(stage: int, buffers: int) -> None:
    found = optimizer.buckets(run(layout=replace(zero(stage, 8), bucket=500_000_000, overlaps=True)))
    assert found is not None
    assert found.bytes == buffers * 2 * 500_000_000


def test_buckets_of_zero_2_are_there_in_the_backward_pass_alone() -> None:
    from oomdoctor.memory.phases import phases

    found = {phase.name: [term.name for term in phase.terms] for phase in phases(run(layout=zero(2, 8)))}
    assert "buckets" in found["backward"]
    assert "buckets" not in found["forward"]


def test_what_zero_3_gathers_on_its_own_stream_waits_for_it() -> None:
    setup = run(layout=zero(3, 8), counter="max_reserved", even_lengths=True)
    gathered = working_copies(setup)
    fewer = replace(setup, layout=replace(setup.layout, live=100_000_000))
    from oomdoctor.memory.estimate import estimate

    assert gathered is not None
    assert estimate(setup).terms["allocator"] - estimate(fewer).terms["allocator"] > 900_000_000
