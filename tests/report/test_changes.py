"""What `oomdoctor fix` says of each step, in both languages and without anything that a terminal would act upon."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from planning.runs import a_card, a_run

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import MemoryBudget, Plan, Plans
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import ConfigChange, RefusedChange
from oomdoctor.configs.proposals.apply import AppliedProposals, AppliedStep
from oomdoctor.configs.proposals.choice import Choice
from oomdoctor.configs.proposals.new_file import NewFile
from oomdoctor.configs.proposals.proposal import Proposal
from oomdoctor.memory.estimate import estimate as calculate
from oomdoctor.planning.plans import plans
from oomdoctor.planning.run_space import run_space
from oomdoctor.report.edits.fix import render
from oomdoctor.report.wording.wording import Wording

CHANGE = ConfigChange(file="a.yaml", key="k", to="2")
REFUSED = RefusedChange(Text("it is shared", "它是共用的"), "k: 2")
BEFORE = {"a.yaml": b"k: 1  # \x1b[31mred\n"}


def proposal(**more: object) -> Proposal:
    given = {"id": "a-fix", "title": Text("A fix", "一项改动"), "safe": True}
    return Proposal(**{**given, **more})  # type: ignore[arg-type]


def printed(step: AppliedStep, *, lang: str = "en", color: bool = False, files: dict[str, bytes] | None = None) -> str:
    return render(AppliedProposals(files=files or {}, steps=(step,)), BEFORE, Choice([], [], []), None, Wording(lang), color=color)


def waiting(undecided: list[Proposal], others: list[Proposal], lang: str = "en") -> str:
    return render(AppliedProposals(files={}, steps=()), BEFORE, Choice([], undecided, others), None, Wording(lang), color=False)


@pytest.mark.parametrize(("step", "en", "zh"), [
    pytest.param(AppliedStep(proposal=proposal(), made=(CHANGE,)), "change   a-fix  A fix.\n", "改动      a-fix  一项改动。\n", id="made"),
    pytest.param(AppliedStep(proposal=proposal(fits="no"), made=(CHANGE,)), "change   a-fix  A fix. That alone is not enough.\n", "改动      a-fix  一项改动。只改这一项还不够。\n", id="made, and not enough"),
    pytest.param(AppliedStep(proposal=proposal(), already=True), "already  a-fix  A fix.\n", "已是如此  a-fix  一项改动。\n", id="so already"),
    pytest.param(AppliedStep(proposal=proposal(), refusals=(REFUSED,)), "skipped  a-fix  A fix.\n    k: 2  (it is shared)\n", "未改动    a-fix  一项改动。\n    k: 2（它是共用的）\n", id="left"),
    pytest.param(AppliedStep(proposal=proposal(by_hand=(REFUSED,))), "by hand  a-fix  A fix.\n    k: 2  (it is shared)\n", "需手动    a-fix  一项改动。\n    k: 2（它是共用的）\n", id="for a person"),
    pytest.param(AppliedStep(proposal=proposal(launch=("run x",)), created=(NewFile(path="d", named="d", text="", role="sharding"),)), "change   a-fix  A fix.\n    then run: run x\n", "改动      a-fix  一项改动。\n    然后运行：run x\n", id="a file that is used by a command"),
    pytest.param(AppliedStep(proposal=proposal()), "", "", id="nothing of it is for these files"),
])  # fmt: skip
def test_a_step(step: AppliedStep, en: str, zh: str) -> None:
    assert (printed(step), printed(step, lang="zh")) == (en or "Nothing to change.\n", zh or "没有需要改动的地方。\n")


def test_the_difference_comes_first_and_without_escapes() -> None:
    step = AppliedStep(proposal=proposal(), made=(CHANGE,))
    text = printed(step, files={"a.yaml": b"k: 2  # \x1b[31mred\n", "new.json": b"{}"})
    assert text.startswith("--- a.yaml\n+++ a.yaml\n@@ -1 +1 @@\n-k: 1") and "--- /dev/null\n+++ new.json\n" in text
    assert "\x1b" not in text and "\\ No newline at end of file" in text


def test_colours_are_for_a_terminal() -> None:
    step = AppliedStep(proposal=proposal(), made=(CHANGE,))
    assert "\x1b[31m-k: 1" in printed(step, files={"a.yaml": b"k: 2\n"}, color=True)
    assert "\x1b" not in printed(step, files={"a.yaml": b"k: 2\n"})


def test_what_a_person_decides_is_shown_with_its_lines() -> None:
    file = NewFile(path="ds.json", named="ds.json", text="{}", role="sharding")
    proposed = proposal(changes=(CHANGE,), files=(file,), by_hand=(REFUSED,), fits="yes")
    assert waiting([proposed], []) == (
        "decide   a-fix  A fix.\n    k: 2\n    a new file: ds.json\n    by hand: k: 2  (it is shared)\n"
        "Changes that need your decision are written only with --yes.\n"
    )
    assert waiting([proposal(changes=(CHANGE,))], [], "zh") == "待决定    a-fix  一项改动。\n    k: 2\n待决定的改动加上 --yes 才会写入。\n"


def test_what_else_there_is_is_named_once() -> None:
    assert "--only ID --yes): one, two." in waiting([], [proposal(id="one"), proposal(id="two"), proposal(id="one")])


def test_of_a_change_that_is_made_in_part_nobody_says_that_it_is_enough() -> None:
    step = AppliedStep(proposal=proposal(fits="yes", by_hand=(REFUSED,)), made=(CHANGE,))
    assert printed(step) == "change   a-fix  A fix.\n    by hand: k: 2  (it is shared)\n"
    assert printed(step, lang="zh") == "改动      a-fix  一项改动。\n    需手动：k: 2（它是共用的）\n"


CARD = MemoryBudget("A card", 24 << 30, 23 << 30)


def estimate(gib: int) -> Estimate:
    estimated = calculate(a_run())
    return replace(estimated, expected=gib << 30, low=gib - 1 << 30, high=gib + 1 << 30)


def planned(planned_run: Plans[Estimate], lang: str = "en") -> str:
    return render(AppliedProposals(files={}, steps=()), BEFORE, Choice([], [], []), planned_run, Wording(lang), color=False)


def test_a_run_that_fits_is_said_to_fit() -> None:
    planned_run = Plans(budget=CARD, now=estimate(12), fits="yes")
    assert planned(planned_run) == "The run fits as is: it needs 12.0 GiB (11.0 to 13.0); A card has 23.0 GiB usable.\n"
    assert planned(planned_run, "zh") == "现在就放得下：需要 12.0 GiB（11.0 至 13.0）；A card 可规划的显存为 23.0 GiB。\n"


def test_where_nothing_fits_it_is_said_how_far_it_is() -> None:
    planned_run = plans(run_space(a_run("Qwen/Qwen2.5-72B"), a_card("8GB")))
    assert planned_run.obstacle is not None
    needs = planned_run.obstacle.closest.outcome
    assert f"No combination of settings fits: the smallest needs {needs.expected / 2**30:.1f} GiB" in planned(planned_run)
    assert "没有哪种设置组合放得下" in planned(planned_run, "zh")


def test_a_plan_says_what_the_run_then_needs() -> None:
    plan = Plan(measures=(), outcome=estimate(20), time=1.0, risk="none", effort=0)
    planned_run = Plans(budget=CARD, now=estimate(99), fits="no", plans=(plan,))
    settled = AppliedProposals(files={}, steps=(AppliedStep(proposal=proposal(id="plan-1", fits="yes", plan=plan), made=(CHANGE,)),))
    assert render(settled, BEFORE, Choice([], [], []), planned_run, Wording("en"), color=False) == (
        "change   plan-1  A fix. With it the run should fit.\n    it then needs 20.0 GiB (19.0 to 21.0); A card has 23.0 GiB usable\n"
    )
