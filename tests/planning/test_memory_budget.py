"""What a card has usable, and when a run fits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from planning.runs import a_card, a_run
from planning.test_search import RUNS

from oomdoctor.case.setup import Setup
from oomdoctor.memory.estimate import estimate
from oomdoctor.planning.memory_budget import fits, needed


@settings(max_examples=40)
@given(RUNS)
def test_a_run_needs_its_live_tensors_and_never_more_than_the_card_shows_in_the_end(run: Setup) -> None:
    need = needed(run, a_card())
    assert estimate(replace(run, counter="max_allocated")).expected <= need.expected
    assert need.expected <= estimate(replace(run, counter="nvidia-smi", even_lengths=False)).expected


@given(RUNS, st.integers(0, 64 << 30))
def test_a_smaller_budget_never_makes_a_run_fit(run: Setup, taken: int) -> None:
    order = {"no": 0, "close": 1, "yes": 2}
    card = a_card("A100-80GB")
    need = needed(run, card)
    assert order[fits(need, card.minus_unexplained(taken))] <= order[fits(need, card)]


@pytest.mark.parametrize(("card", "verdict"), [
    pytest.param("8GB", "no", id="even the least is more than the card"),
    pytest.param("RTX 4090", "close", id="the range reaches beyond the card"),
    pytest.param("A100-80GB", "yes", id="the most that it may be is there"),
])  # fmt: skip
def test_the_verdict_looks_at_both_ends(card: str, verdict: str) -> None:
    budget = a_card(card)
    assert fits(needed(a_run(gradient_checkpointing=True, micro_batch=2), budget), budget) == verdict


def test_what_a_log_measured_is_taken_off_the_budget_and_not_counted_twice() -> None:
    budget = a_card()
    measured = replace(budget, outside=600 << 20)
    run = a_run(gradient_checkpointing=True)
    names = [{term.name for term in needed(run, one).peak.terms} for one in (budget, measured)]
    assert names[0] - names[1] == {"context"}


@pytest.mark.parametrize("cards", [1, 4])
def test_states_that_are_paged_can_all_come_to_the_host(cards: int) -> None:
    run = a_run("Qwen/Qwen2.5-0.5B", finetuning="full", cards=cards, optimizer="paged_adamw_32bit")
    assert needed(run, a_card()).host == pytest.approx(cards * 8 * 494e6, rel=0.01)
    assert needed(a_run("Qwen/Qwen2.5-0.5B", finetuning="full", cards=cards), a_card()).host == 0
