"""What must hold of every search: plans fit, keep the batch, need each of their changes, and are not dominated."""

from __future__ import annotations

from functools import reduce
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from planning.runs import a_card, a_run

from oomdoctor.case.plan import MemoryBudget, Plan
from oomdoctor.case.setup import Setup
from oomdoctor.planning.incompatible import incompatible
from oomdoctor.planning.memory_budget import fits, needed
from oomdoctor.planning.options import batches, replicas, subjects
from oomdoctor.planning.search import anything, costs, search, undominated

MODELS = ("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-7B", "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "zai-org/glm-4v-9b")
RUNS = st.builds(
    a_run,
    model=st.sampled_from(MODELS),
    framework=st.sampled_from(["llamafactory", "transformers", "glm4", "torchtune"]),
    cards=st.sampled_from([1, 2, 8]),
    finetuning=st.sampled_from(["lora", "full", "qlora", "freeze"]),
    micro_batch=st.sampled_from([1, 2, 3, 8, 12]),
    accumulation=st.sampled_from([1, 2, 5]),
    sequence_length=st.sampled_from([512, 2048, 8192]),
    gradient_checkpointing=st.booleans(),
    attention=st.sampled_from(["sdpa", "eager"]),
    zero_stage=st.sampled_from([None, 2, 3]),
    freeze_vision=st.booleans(),
    eval_strategy=st.sampled_from(["no", "steps"]),
    eval_batch=st.sampled_from([1, 8]),
)
ROOMS = st.builds(a_card, st.sampled_from(["8GB", "RTX 4090", "A100-40GB", "A100-80GB"]))


def changes(plan: Plan) -> frozenset[object]:
    return frozenset((measure.fix, measure.sets) for measure in plan.measures)


def samples(run: Setup) -> int:
    """Of one update, on all cards."""
    return run.batch * run.accumulation * replicas(run)


@settings(max_examples=40)
@given(RUNS, ROOMS)
def test_every_plan_fits_by_the_estimate_and_keeps_the_samples_of_an_update(run: Setup, room: MemoryBudget) -> None:
    for plan in search(run, room).plans:
        again = needed(plan.estimate.setup, room)
        assert again == plan.estimate
        assert fits(again, room) == "yes"
        assert samples(again.setup) == samples(run)
        assert plan.risk == "data" or again.setup.length == run.length


@settings(max_examples=40)
@given(RUNS, ROOMS)
def test_no_plan_holds_another_one(run: Setup, room: MemoryBudget) -> None:
    found = [changes(plan) for plan in search(run, room).plans]
    assert not [(one, other) for one in found for other in found if one < other]


@settings(max_examples=40)
@given(RUNS, ROOMS)
def test_no_plan_that_is_shown_is_dominated_and_none_gets_lost(run: Setup, room: MemoryBudget) -> None:
    found = search(run, room).plans
    shown = undominated(found)
    for plan in shown:
        better = [
            other for other in found if costs(other) != costs(plan) and all(a <= b for a, b in zip(costs(other), costs(plan), strict=True))
        ]
        assert better == []
    for plan in found:
        assert any(all(a <= b for a, b in zip(costs(one), costs(plan), strict=True)) for one in shown)


@settings(max_examples=40)
@given(RUNS)
def test_more_memory_removes_no_plan(run: Setup) -> None:
    small, large = a_card("RTX 4090"), a_card("A100-80GB")
    found = search(run, small).plans
    assert all(fits(needed(plan.estimate.setup, large), large) == "yes" for plan in found)
    assert bool(search(run, large).plans) >= bool(found)


@settings(max_examples=15)
@given(RUNS, ROOMS)
def test_a_change_or_two_that_would_do_are_found(run: Setup, room: MemoryBudget) -> None:
    ways = (*subjects(run, room.capability, anything), batches(run))
    pairs = product(*[(None, *options) for options in ways[:3]], (None, *ways[-1][-1:]))
    made = (reduce(lambda setup, option: option.applied(setup), filter(None, picked), run) for picked in pairs)
    if any(not incompatible(one) and fits(needed(one, room), room) == "yes" for one in made):
        assert [plan for plan in search(run, room).plans if plan.risk != "data"]


def test_the_order_does_not_depend_on_the_run() -> None:
    run, room = a_run(cards=4, micro_batch=8, accumulation=2), a_card()
    assert search(run, room) == search(run, room)


def test_one_plan_is_enough_where_only_that_is_asked() -> None:
    run, room = a_run(cards=4, micro_batch=8, accumulation=2), a_card()
    assert len(search(run, room, first=True).plans) == 1 < len(search(run, room).plans)


def test_a_run_that_cannot_fit_says_what_comes_nearest() -> None:
    run, room = a_run("Qwen/Qwen2.5-72B"), a_card("8GB")
    found = search(run, room)
    assert found.plans == ()
    assert found.closest.estimate.high < needed(run, room).high


def test_each_change_of_a_plan_says_the_accumulation_that_all_lead_to() -> None:
    run, room = a_run(cards=4, micro_batch=4, accumulation=2, sequence_length=32768, fused_cross_entropy=True), a_card("RTX 4090")
    found = [plan for plan in search(run, room).plans if {"smaller-batch", "context-parallel"} <= {one.fix for one in plan.measures}]
    assert found
    for plan in found:
        said = {dict(measure.sets).get("accumulation") for measure in plan.measures} - {None}
        assert said == {plan.estimate.setup.accumulation}


def test_a_plan_that_takes_host_memory_does_not_hide_one_that_does_not() -> None:
    run = a_run("meta-llama/Llama-3.1-8B", cards=4, finetuning="full", zero_stage=3, micro_batch=4, accumulation=4, sequence_length=4096,
                gradient_checkpointing=True)  # fmt: skip
    shown = undominated([plan for plan in search(run, a_card("A100-40GB")).plans if plan.risk in ("none", "slight")])
    assert min(plan.estimate.host for plan in shown) == 0 < max(plan.estimate.host for plan in shown)


def test_what_a_run_has_already_does_not_stand_in_the_way_of_its_plans() -> None:
    run = a_run("meta-llama/Llama-3.1-8B", cards=8, finetuning="full", zero_stage=2, optimizer="paged_adamw_8bit", micro_batch=4)
    assert incompatible(run)
    assert search(run, a_card("A100-80GB")).plans
