"""Situations, and what is proposed first in each."""

from __future__ import annotations

import pytest
from planning.runs import a_card, a_run

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Plan
from oomdoctor.case.setup import Setup
from oomdoctor.planning.plans import plans
from oomdoctor.planning.run_space import run_space


def fixes(plan: Plan[Estimate]) -> list[str]:
    return [measure.fix for measure in plan.measures]


@pytest.mark.parametrize(("run", "card", "first"), [
    pytest.param(
        a_run(micro_batch=8, accumulation=2, sequence_length=1024), "RTX 4090", ["smaller-batch"],
        id="a batch that is too large is made smaller, and nothing else is touched",
    ),
    pytest.param(
        a_run("THUDM/glm-4v-9b", "glm4", lora_targets="query_key_value", freeze_vision=False), "A100-80GB", ["freeze-vision-tower"],
        id="a trained vision tower is frozen",
    ),
    pytest.param(
        a_run(cards=8, framework="transformers", finetuning="full", micro_batch=4, accumulation=4, gradient_checkpointing=True,
              fused_cross_entropy=True), "A100-80GB", ["zero2-zero3"],
        id="full training on several large cards is sharded",
    ),
    pytest.param(
        a_run("Qwen/Qwen2.5-14B", gradient_checkpointing=True), "RTX 4090", ["quantise-4bit-8bit"],
        id="LoRA on a base model that fills one card takes it in four bits",
    ),
    pytest.param(
        a_run(attention="eager", micro_batch=1, sequence_length=8192, fused_cross_entropy=True), "A100-40GB", ["attention-kernel"],
        id="attention that writes its scores out gets a kernel that does not",
    ),
    pytest.param(
        a_run(eval_strategy="steps", eval_batch=32, sequence_length=1024), "RTX 4090", ["evaluation"],
        id="an evaluation with a large batch gets a smaller one, and training stays as it is",
    ),
])  # fmt: skip
def test_the_smallest_change_comes_first(run: Setup, card: str, first: list[str]) -> None:
    result = plans(run_space(run, a_card(card)))
    assert result.fits != "yes"
    assert fixes(result.plans[0]) == first


def test_a_run_that_fits_is_left_alone() -> None:
    result = plans(run_space(a_run(load_bits=4), a_card("A100-80GB")))
    assert (result.fits, result.plans, result.obstacle) == ("yes", (), None)


def test_samples_are_cut_only_where_nothing_else_helps() -> None:
    enough = plans(run_space(a_run(sequence_length=4096), a_card()))
    assert enough.plans
    assert all("shorter-sequences" not in fixes(plan) for plan in enough.plans)
    last = plans(run_space(a_run("Qwen/Qwen2.5-3B", load_bits=4, sequence_length=8192, fused_cross_entropy=True), a_card("6GB")))
    assert last.plans
    assert all("shorter-sequences" in fixes(plan) for plan in last.plans)


def test_where_nothing_fits_the_smallest_card_and_count_are_named() -> None:
    result = plans(run_space(a_run("Qwen/Qwen2.5-72B", cards=2), a_card("4GB")))
    assert result.plans == ()
    assert result.obstacle is not None
    assert result.obstacle.closest.outcome.high > result.budget.usable
    assert result.obstacle.card is not None
    assert result.obstacle.cards is None or result.obstacle.cards > 2


def test_a_card_without_triton_gets_no_fused_loss() -> None:
    run = a_run("Qwen/Qwen2.5-0.5B", micro_batch=8, sequence_length=4096)
    newer, older = (plans(run_space(run, a_card(card)), top=50) for card in ("Tesla T4", "Tesla P100-PCIE-16GB"))
    assert any("fused-cross-entropy" in fixes(plan) for plan in newer.plans)
    assert not any("fused-cross-entropy" in fixes(plan) for plan in older.plans)


def test_only_what_the_framework_has_is_offered() -> None:
    run = a_run(micro_batch=8, cards=4)
    result = plans(run_space(run, a_card(), lambda fix: fix not in ("quantise-4bit-8bit", "zero2-zero3")), top=50)
    assert result.plans
    assert not {fix for plan in result.plans for fix in fixes(plan)} & {"quantise-4bit-8bit", "zero2-zero3"}


def test_nothing_is_changed_that_changes_nothing() -> None:
    """Exchanging after every micro batch is said where there are several of them, and only there."""
    run = a_run(
        "Qwen/Qwen2.5-14B",
        "transformers",
        4,
        finetuning="full",
        fsdp=True,
        micro_batch=4,
        sequence_length=4096,
        gradient_checkpointing=True,
    )
    result = plans(run_space(run, a_card("A100-80GB")))
    steps = {"sync-each-batch" in fixes(plan): plan.outcome.setup.accumulation for plan in result.plans if plan.outcome.setup.layout.syncs}
    assert steps
    assert all((accumulation > 1) is said for said, accumulation in steps.items())
