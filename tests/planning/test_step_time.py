"""The model of time: what costs more never looks cheaper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from planning.runs import a_run

from oomdoctor.case.setup import Layout, Setup
from oomdoctor.knowledge.tables.memory import known_format
from oomdoctor.planning.step_time import seconds


@given(st.sampled_from([2, 4, 8, 16]))
def test_the_same_samples_in_smaller_batches_take_longer(parts: int) -> None:
    run = a_run(micro_batch=16)
    assert seconds(replace(run, batch=16 // parts, accumulation=parts)) > seconds(run)


def test_checkpointing_costs_about_a_third() -> None:
    run = a_run(finetuning="full", gradient_checkpointing=False)
    assert seconds(replace(run, checkpointing="full")) / seconds(run) == pytest.approx(4 / 3)


@pytest.mark.parametrize(("less", "more"), [
    pytest.param({"zero_stage": 2}, {"zero_stage": 3}, id="stage 3 gathers the weights, stage 2 does not"),
    pytest.param({"zero_stage": 2}, {"zero_stage": 2, "offload_optimizer": "cpu"}, id="an optimizer on the host"),
    pytest.param({"zero_stage": 3}, {"zero_stage": 3, "offload_params": "cpu"}, id="weights on the host"),
    pytest.param({"load_bits": 16}, {"load_bits": 4}, id="weights that are unpacked"),
    pytest.param({}, {"activation_offload": True}, id="activations on the host"),
])  # fmt: skip
def test_more_bytes_or_more_work_take_longer(less: dict[str, object], more: dict[str, object]) -> None:
    def run(settings: dict[str, object]) -> Setup:
        return a_run(cards=4, finetuning="lora", gradient_checkpointing=True, **settings)  # type: ignore[arg-type]

    assert seconds(run(more)) > seconds(run(less))


@pytest.mark.parametrize("steps", [1, 4, 64])
def test_a_pipeline_waits_for_its_share_of_the_time(steps: int) -> None:
    run = replace(a_run(finetuning="full", cards=4, gradient_checkpointing=True), accumulation=steps)
    long = replace(run, batch=512, length=8192)  # so much arithmetic that nothing else counts
    staged = replace(long, layout=replace(run.layout, pipeline=4), accumulation=4 * steps)
    alone = seconds(replace(long, layout=Layout()))
    waiting = 1 - alone / seconds(staged)
    assert waiting == pytest.approx(3 / (4 * steps + 3), rel=0.05)


@given(st.sampled_from(["context", "tensor"]), st.sampled_from([2, 4]))
def test_cards_that_share_samples_talk_more(name: str, size: int) -> None:
    run = a_run(cards=4, finetuning="full", gradient_checkpointing=True, micro_batch=8, sequence_length=8192)
    shared = replace(run, layout=replace(run.layout, **{name: size}), accumulation=size)
    assert seconds(shared) > seconds(run)


def test_an_update_on_the_host_takes_as_long_for_many_cards_as_for_one() -> None:
    run = a_run(cards=8, finetuning="full", zero_stage=3)
    few, many = (replace(run, layout=replace(run.layout, cards=cards)) for cards in (8, 64))
    longer = [seconds(replace(one, offload_optimizer=True)) - seconds(one) for one in (few, many)]
    assert longer[0] == pytest.approx(longer[1], rel=0.2)


def test_gradients_on_the_host_are_added_up_on_the_card() -> None:
    """Each further micro batch fetches the sum and sends it back, with DeepSpeed."""
    run = a_run(cards=4, finetuning="full", zero_stage=2, offload_optimizer="cpu")
    kept = a_run(cards=4, finetuning="full", zero_stage=2)
    one, eight = (seconds(replace(run, accumulation=steps)) - seconds(replace(kept, accumulation=steps)) for steps in (1, 8))
    assert eight > one


def test_packed_weights_travel_packed() -> None:
    run = a_run("Qwen/Qwen2.5-32B", cards=8, gradient_checkpointing=True, zero_stage=3, sequence_length=512)
    assert seconds(replace(run, weights=known_format("nf4"))) < seconds(run)


def test_one_card_moves_nothing() -> None:
    run = a_run(cards=1, gradient_checkpointing=True)
    assert seconds(replace(run, layout=Layout(engine="ddp", cards=4))) > seconds(run)
