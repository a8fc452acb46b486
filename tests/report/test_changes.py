"""What `oomdoctor fix` says of each step, in both languages and without anything that a terminal would act upon."""

from __future__ import annotations

import pytest

from oomdoctor.case.diagnosis import Text
from oomdoctor.changes.change import Change, Refused
from oomdoctor.changes.new_file import NewFile
from oomdoctor.changes.proposal import Proposal
from oomdoctor.changes.settle import Settled, Step
from oomdoctor.report.changes import render

CHANGE = Change(file="a.yaml", key="k", to="2")
REFUSED = Refused(Text("it is shared", "它是共用的"), "k: 2")
BEFORE = {"a.yaml": b"k: 1  # \x1b[31mred\n"}


def proposal(**more: object) -> Proposal:
    given = {"id": "a-fix", "title": Text("A fix", "一项改动"), "safe": True}
    return Proposal(**{**given, **more})  # type: ignore[arg-type]


def said(step: Step, *, lang: str = "en", color: bool = False, files: dict[str, bytes] | None = None) -> str:
    return render(Settled(files=files or {}, steps=(step,)), BEFORE, [], lang, color=color)


@pytest.mark.parametrize(("step", "en", "zh"), [
    pytest.param(Step(proposal=proposal(), made=(CHANGE,)), "change   a-fix  A fix.\n", "改动      a-fix  一项改动。\n", id="made"),
    pytest.param(Step(proposal=proposal(fits="no"), made=(CHANGE,)), "change   a-fix  A fix. That alone is not enough.\n", "改动      a-fix  一项改动。只改这一项还不够。\n", id="made, and not enough"),
    pytest.param(Step(proposal=proposal(), already=True), "is so    a-fix  A fix.\n", "已是如此  a-fix  一项改动。\n", id="so already"),
    pytest.param(Step(proposal=proposal(), refused=(REFUSED,)), "left     a-fix  A fix.\n    k: 2  (it is shared)\n", "未改动    a-fix  一项改动。\n    k: 2（它是共用的）\n", id="left"),
    pytest.param(Step(proposal=proposal(by_hand=(REFUSED,))), "by hand  a-fix  A fix.\n    k: 2  (it is shared)\n", "需手动    a-fix  一项改动。\n    k: 2（它是共用的）\n", id="for a person"),
    pytest.param(Step(proposal=proposal(launch=("run x",)), created=(NewFile(path="d", named="d", text="", role="sharding"),)), "change   a-fix  A fix.\n    then run: run x\n", "改动      a-fix  一项改动。\n    然后运行：run x\n", id="a file that is used by a command"),
    pytest.param(Step(proposal=proposal()), "", "", id="nothing of it is for these files"),
])  # fmt: skip
def test_a_step(step: Step, en: str, zh: str) -> None:
    assert (said(step), said(step, lang="zh")) == (en or "Nothing to change.\n", zh or "没有需要改动的地方。\n")


def test_the_difference_comes_first_and_without_escapes() -> None:
    step = Step(proposal=proposal(), made=(CHANGE,))
    told = said(step, files={"a.yaml": b"k: 2  # \x1b[31mred\n", "new.json": b"{}"})
    assert told.startswith("--- a.yaml\n+++ a.yaml\n@@ -1 +1 @@\n-k: 1") and "--- /dev/null\n+++ new.json\n" in told
    assert "\x1b" not in told and "\\ No newline at end of file" in told


def test_colours_are_for_a_terminal() -> None:
    step = Step(proposal=proposal(), made=(CHANGE,))
    assert "\x1b[31m-k: 1" in said(step, files={"a.yaml": b"k: 2\n"}, color=True)
    assert "\x1b" not in said(step, files={"a.yaml": b"k: 2\n"})


def test_what_waits_is_named_once() -> None:
    waiting = [proposal(id="one"), proposal(id="two"), proposal(id="one")]
    assert "--yes --only ID): one, two." in render(Settled(files={}, steps=()), BEFORE, waiting, "en", color=False)
