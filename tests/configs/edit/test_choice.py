"""What is made without a word, with `--yes`, by number and by name."""

from __future__ import annotations

import pytest

from oomdoctor.case.settings import ConfigIssue, Severity
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import ConfigChange, RefusedChange
from oomdoctor.configs.proposals.choice import Choice, ProposalSelection, choose, choose_by_name
from oomdoctor.configs.proposals.proposal import Proposal

SAYS = Text("It is so", "是这样")


def one(name: str, *, safe: bool = True, by_hand: bool = False, issue: Severity | None = None) -> Proposal:
    wrong = ConfigIssue(id=name, severity=issue, key="k", file="a", line=1, what=SAYS, why=SAYS) if issue else None
    left = (RefusedChange(SAYS, "k: 2"),) if by_hand else ()
    return Proposal(id=name, title=SAYS, safe=safe, issue=wrong, changes=(ConfigChange(file="a", key=name, to="2"),), by_hand=left)


CORRECTIONS = (one("misspelt", issue="error"), one("advice", safe=False, issue="note"))
FIXES = (one("batch"), one("checkpointing"), one("quantise", safe=False), one("shorter", safe=False))
SAFE, SHARP, PARTLY = one("plan-2"), one("plan-1", safe=False), one("plan-1", by_hand=True)
ANOTHER = ProposalSelection(corrections=(one("bf16", safe=False, issue="warning"),))
LOG = ProposalSelection(corrections=CORRECTIONS, fixes=FIXES, first=frozenset({"batch", "quantise"}))


def offers(*plans: Proposal, fixes: tuple[Proposal, ...] = FIXES) -> ProposalSelection:
    return ProposalSelection(corrections=CORRECTIONS, fixes=fixes, first=LOG.first, plans=plans)


def ids(choice: Choice) -> list[list[str]]:
    return [[each.id for each in part] for part in (choice.taken, choice.undecided, choice.others)]


@pytest.mark.parametrize(("there", "yes", "plan", "taken", "undecided", "others"), [
    pytest.param(LOG, False, None, ["misspelt", "batch", "checkpointing"], ["quantise"], ["shorter"], id="a log alone: what is safe"),
    pytest.param(LOG, True, None, ["misspelt", "batch", "checkpointing", "quantise"], [], ["shorter"], id="a log and yes: also the first of each finding, not all"),
    pytest.param(offers(SAFE), False, None, ["misspelt", "plan-2"], [], ["batch", "checkpointing", "quantise", "shorter"], id="a safe plan is enough"),
    pytest.param(offers(SAFE), True, None, ["misspelt", "plan-2"], [], ["batch", "checkpointing", "quantise", "shorter"], id="a safe plan is enough with yes too"),
    pytest.param(offers(SHARP, SAFE), False, None, ["misspelt", "plan-2"], ["plan-1"], ["batch", "checkpointing", "quantise", "shorter"], id="a later plan that is safe before one to decide"),
    pytest.param(offers(SHARP, SAFE), True, None, ["misspelt", "plan-1"], [], ["plan-2", "batch", "checkpointing", "quantise", "shorter"], id="yes takes the first plan"),
    pytest.param(offers(SHARP), False, None, ["misspelt", "batch", "checkpointing"], ["plan-1"], ["quantise", "shorter"], id="no safe plan: what is safe of the diagnosis"),
    pytest.param(offers(PARTLY, SAFE), True, None, ["misspelt", "plan-2"], [], ["plan-1", "batch", "checkpointing", "quantise", "shorter"], id="a plan that the files can hold before one that they cannot"),
    pytest.param(offers(PARTLY, fixes=()), True, None, ["misspelt", "plan-1"], [], [], id="a plan that the files hold in part where there is no other"),
    pytest.param(offers(SHARP, SAFE), True, "plan-2", ["misspelt", "plan-2"], [], ["plan-1", "batch", "checkpointing", "quantise", "shorter"], id="the plan of this number"),
    pytest.param(offers(SHARP, SAFE), False, "plan-1", ["misspelt"], ["plan-1"], ["plan-2", "batch", "checkpointing", "quantise", "shorter"], id="a number is no yes"),
    pytest.param(LOG, True, "plan-1", ["misspelt"], [], ["batch", "checkpointing", "quantise", "shorter"], id="a plan of a run that fits: nothing in its place"),
    pytest.param(ProposalSelection(), True, None, [], [], [], id="nothing is wrong"),
    pytest.param(ANOTHER, False, None, [], ["bf16"], [], id="a correction that changes what is trained waits"),
    pytest.param(ANOTHER, True, None, ["bf16"], [], [], id="a correction that changes what is trained, and yes"),
])  # fmt: skip
def test_what_is_made(
    there: ProposalSelection, yes: bool, plan: str | None, taken: list[str], undecided: list[str], others: list[str]
) -> None:
    assert ids(choose(there, yes=yes, plan=plan)) == [taken, undecided, others]


@pytest.mark.parametrize(("names", "yes", "taken", "undecided"), [
    pytest.param(["batch"], False, ["batch"], [], id="a safe one"),
    pytest.param(["shorter"], False, [], ["shorter"], id="one to decide waits"),
    pytest.param(["shorter", "plan-2"], True, ["plan-2", "shorter"], [], id="a plan and a fix"),
    pytest.param(["advice"], True, ["advice"], [], id="a note about a config"),
])  # fmt: skip
def test_by_name_that_and_nothing_else(names: list[str], yes: bool, taken: list[str], undecided: list[str]) -> None:
    assert ids(choose_by_name(offers(SHARP, SAFE), names, yes=yes)) == [taken, undecided, []]


@pytest.mark.parametrize("yes", [False, True])
@pytest.mark.parametrize("plan", [None, "plan-1", "plan-2"])
def test_of_plans_at_most_one_is_made_and_nothing_that_a_person_decides_without_a_yes(yes: bool, plan: str | None) -> None:
    made = choose(offers(SHARP, SAFE, PARTLY), yes=yes, plan=plan).taken
    assert sum(each.id.startswith("plan-") for each in made) <= 1
    assert yes or all(each.safe for each in made)
