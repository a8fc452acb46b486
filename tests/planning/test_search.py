"""What must hold of every search: plans fit, keep the batch, need each of their changes, and are not dominated."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from planning.runs import a_card, a_run, anything

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import MemoryBudget, Plan
from oomdoctor.case.setup import Setup
from oomdoctor.planning.incompatible import incompatible
from oomdoctor.planning.memory_budget import fits, needed
from oomdoctor.planning.options import applied
from oomdoctor.planning.run_options import batches, replicas, subjects
from oomdoctor.planning.run_space import run_space
from oomdoctor.planning.search import search, undominated

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
DRAWN = settings(max_examples=25, derandomize=True)
"""The same each time: of most runs a search takes some hundredths of a second, of a few that hardly fit on many cards two seconds."""
BUDGETS = st.builds(a_card, st.sampled_from(["8GB", "RTX 4090", "A100-40GB", "A100-80GB"]))


def changes(plan: Plan[Estimate]) -> frozenset[object]:
    return frozenset((measure.fix, measure.sets) for measure in plan.measures)


def samples(run: Setup) -> int:
    """Of one update, on all cards."""
    return run.batch * run.accumulation * replicas(run)


@DRAWN
@given(RUNS, BUDGETS)
def test_every_plan_fits_by_the_estimate_and_keeps_the_samples_of_an_update(run: Setup, budget: MemoryBudget) -> None:
    for plan in search(run_space(run, budget)).plans:
        again = needed(plan.outcome.setup, budget)
        assert again == plan.outcome
        assert fits(again, budget) == "yes"
        assert samples(again.setup) == samples(run)
        assert plan.risk == "data" or again.setup.length == run.length


@DRAWN
@given(RUNS, BUDGETS)
def test_no_plan_holds_another_one(run: Setup, budget: MemoryBudget) -> None:
    found = [changes(plan) for plan in search(run_space(run, budget)).plans]
    assert not [(one, other) for one in found for other in found if one < other]


@DRAWN
@given(RUNS, BUDGETS)
def test_no_plan_that_is_shown_is_dominated_and_none_gets_lost(run: Setup, budget: MemoryBudget) -> None:
    space = run_space(run, budget)
    every, costs = search(space).plans, space.costs
    shown = undominated(space, every)
    for plan in shown:
        better = [
            other for other in every if costs(other) != costs(plan) and all(a <= b for a, b in zip(costs(other), costs(plan), strict=True))
        ]
        assert better == []
    for plan in every:
        assert any(all(a <= b for a, b in zip(costs(cheaper), costs(plan), strict=True)) for cheaper in shown)


@DRAWN
@given(RUNS)
def test_more_memory_removes_no_plan(run: Setup) -> None:
    small, large = a_card("RTX 4090"), a_card("A100-80GB")
    found = search(run_space(run, small)).plans
    assert all(fits(needed(plan.outcome.setup, large), large) == "yes" for plan in found)
    assert bool(search(run_space(run, large)).plans) >= bool(found)


@settings(DRAWN, max_examples=15)
@given(RUNS, BUDGETS)
def test_a_change_or_two_that_would_do_are_found(run: Setup, budget: MemoryBudget) -> None:
    options = (*subjects(run, budget.capability, anything), batches(run))
    pairs = product(*[(None, *values) for values in options[:3]], (None, *options[-1][-1:]))
    changed = filter(None, (applied(run, [option for option in picked if option is not None]) for picked in pairs))
    if any(not incompatible(setup) and fits(needed(setup, budget), budget) == "yes" for setup in changed):
        assert [plan for plan in search(run_space(run, budget)).plans if plan.risk != "data"]


def test_the_order_does_not_depend_on_the_run() -> None:
    run, budget = a_run(cards=4, micro_batch=8, accumulation=2), a_card()
    assert search(run_space(run, budget)) == search(run_space(run, budget))


def test_a_run_that_cannot_fit_says_what_comes_nearest() -> None:
    run, budget = a_run("Qwen/Qwen2.5-72B"), a_card("8GB")
    result = search(run_space(run, budget))
    assert result.plans == ()
    assert result.closest.outcome.high < needed(run, budget).high


def test_each_change_of_a_plan_says_the_accumulation_that_all_lead_to() -> None:
    run, budget = a_run(cards=4, micro_batch=4, accumulation=2, sequence_length=32768, fused_cross_entropy=True), a_card("RTX 4090")
    found = [
        plan for plan in search(run_space(run, budget)).plans if {"smaller-batch", "context-parallel"} <= {one.fix for one in plan.measures}
    ]
    assert found
    for plan in found:
        said = {dict(measure.sets).get("accumulation") for measure in plan.measures} - {None}
        assert said == {plan.outcome.setup.accumulation}


def test_a_plan_that_takes_host_memory_does_not_hide_one_that_does_not() -> None:
    run = a_run("meta-llama/Llama-3.1-8B", cards=4, finetuning="full", zero_stage=3, micro_batch=4, accumulation=4, sequence_length=4096,
                gradient_checkpointing=True)  # fmt: skip
    space = run_space(run, a_card("A100-40GB"))
    shown = undominated(space, [plan for plan in search(space).plans if plan.risk in ("none", "slight")])
    assert min(plan.outcome.host for plan in shown) == 0 < max(plan.outcome.host for plan in shown)


def test_what_a_run_has_already_does_not_stand_in_the_way_of_its_plans() -> None:
    run = a_run("meta-llama/Llama-3.1-8B", cards=8, finetuning="full", zero_stage=2, optimizer="paged_adamw_8bit", micro_batch=4)
    assert incompatible(run)
    assert search(run_space(run, a_card("A100-80GB"))).plans
