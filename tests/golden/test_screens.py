"""What holds of the screens of all runs under fixtures/cases/: their length, their scale of certainty, and that no figure is lost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from brief_steps import bare_steps
from golden.test_cases import CASES, diagnosis

from oomdoctor.case.event import Certainty, Kind
from oomdoctor.report.diagnosis.also_in_log import stated, stated_use
from oomdoctor.report.diagnosis.certainty import finding_certainty, verdict_certainty
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.diagnosis.headline import summary
from oomdoctor.report.document import Bar, BriefSteps
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.render.terminal import render as terminal
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wording.wording import Wording

SCALE = (Certainty.POSSIBLE, Certainty.LIKELY, Certainty.CERTAIN)
FLAG = re.compile(r"(?<![\w-])--([a-z][\w-]{2,40})[= ][^\s-]")


def screen(case: Path, lang: str) -> Sequence[str]:
    return terminal(redact(compose(diagnosis(case), Wording(lang), "0.0.0")), width=80, color=False).splitlines()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_a_screen_is_short_at_80_columns(case: Path, lang: str) -> None:
    found = diagnosis(case)
    blocks = compose(found, Wording(lang), "0").blocks
    parts = sum(len(block.slices) for block in blocks if isinstance(block, Bar))
    is_plain = not found.written and parts <= 4 and verdict_certainty(found) is Certainty.CERTAIN
    is_open = any(finding.confidence is Certainty.POSSIBLE for finding in found.findings[:1])
    assert len(screen(case, lang)) <= (25 if is_plain and not is_open else 34)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_at_most_three_steps_stand_on_a_screen(case: Path) -> None:
    steps = [step for block in compose(diagnosis(case), Wording("en"), "0").blocks if isinstance(block, BriefSteps) for step in block.steps]
    assert len(steps) <= (2 if diagnosis(case).case.verdict.kind is Kind.LOOK_ALIKE else 3)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_no_step_is_a_bare_heading(case: Path, lang: str) -> None:
    assert not list(bare_steps(diagnosis(case), lang))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_the_headline_says_neither_more_nor_less_than_the_finding(case: Path) -> None:
    found = diagnosis(case)
    headline, sure = summary(found, Wording("en")), verdict_certainty(found)
    if found.case.verdict.memory_failure == "yes":
        assert ("ossibly" in headline, "ost likely" in headline) == (sure is Certainty.POSSIBLE, sure is Certainty.LIKELY)
    for finding in found.findings if found.case.incidents else ():
        assert SCALE.index(finding_certainty(found, finding)) <= SCALE.index(sure)
    if found.findings:
        said = "\n".join(screen(case, "en"))
        assert (f"Why ({Certainty.POSSIBLE.value})" in said) is False


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_what_a_log_states_is_used_or_listed(case: Path) -> None:
    found, wording = diagnosis(case), Wording("en")
    if found.case.verdict.memory_failure == "no":
        return
    blocks = compose(found, wording, "0").blocks
    use, known = stated_use(found.case, blocks, wording), stated(found.case, wording)
    assert len(use.used) >= 0.9 * len(known)


def test_options_of_the_logs_stand_in_the_reports() -> None:
    """By the text of the logs alone, not by what was read of them."""
    told, all_flags = 0, 0
    for case in CASES:
        found = diagnosis(case)
        if found.case.verdict.memory_failure == "no":
            continue
        report = markdown(compose(found, Wording("en"), "0")).replace("\\", "").replace("-", "_")
        flags = {flag.replace("-", "_") for path in case.glob("*.log") for flag in FLAG.findall(path.read_text(encoding="utf-8"))}
        told, all_flags = told + sum(flag in report for flag in flags), all_flags + len(flags)
    assert all_flags > 10
    assert told >= 0.9 * all_flags
