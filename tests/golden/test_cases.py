"""Whole diagnoses of the runs under fixtures/cases/, as a person reads them, in both languages.

A case is a folder: one log, or one for each rank, the configs that expect.yaml names, and the reports. expect.yaml says what
is true of the situation, written before any report was looked at; so a blessed report cannot drift away from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from report.published import validate

from oomdoctor.api.diagnose import diagnose
from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.render.terminal import render as terminal
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = sorted(path for path in (FIXTURES / "cases").iterdir() if path.is_dir())


class Expect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must come out. What a log alone cannot decide is left out, and then not judged."""

    memory_failure: Literal["yes", "no", "possible"]
    kind: str
    cause: str | msgspec.UnsetType | None = msgspec.UNSET
    """Of the first finding; null where it must not name one."""
    finding: str | None = None
    """Id of the first finding."""
    also: tuple[str, ...] = ()
    """Findings that must be there at any place."""
    fixes: tuple[str, ...] = ()
    """Fixes that the first finding must have."""
    leads: str | None = None
    """The first fix of the first finding: what a person tries first."""
    never: tuple[str, ...] = ()
    """Findings and fixes that would mislead."""
    ranks: tuple[int, ...] | None = None
    root: str | None = None
    """`file:line` of the message that states the failure first."""
    config: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    """What must be said about the config."""
    open: str | None = None
    """What the program does not know yet: the case is expected to fail, and the test says when it no longer does."""


@cache
def expected(case: Path) -> Expect:
    return msgspec.yaml.decode((case / "expect.yaml").read_bytes(), type=Expect)


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Names in a report are those that a person would give in that folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@cache
def diagnosis(case: Path) -> Diagnosis:
    with inside(case):
        return diagnose(sorted(Path(path.name) for path in case.glob("*.log")), config=expected(case).config)


def test_there_are_at_least_fifty_cases() -> None:
    assert len(CASES) >= 50


def test_the_readme_says_of_every_case_how_it_was_made() -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", (FIXTURES / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(name for name, *_ in rows[1:]) == [case.name for case in CASES]
    assert all(cell.strip() for row in rows for cell in row)


def _mistakes(found: Diagnosis, wanted: Expect) -> list[str]:
    """What differs from the expectation, a line each."""
    verdict, findings = found.case.verdict, found.findings
    first = findings[0] if findings else None
    ids = {one.id for one in findings}
    said = ids | {fix.id for one in findings for fix in one.fixes}
    pairs: list[tuple[str, object, object]] = [
        ("memory failure", verdict.memory_failure, wanted.memory_failure),
        ("kind", verdict.kind.value, wanted.kind),
    ]
    if wanted.cause is not msgspec.UNSET:
        pairs.append(("cause of the first finding", first and first.cause, wanted.cause))
    if wanted.finding is not None:
        pairs.append(("first finding", first and first.id, wanted.finding))
    if wanted.leads is not None:
        pairs.append(("first fix", first.fixes[0].id if first and first.fixes else None, wanted.leads))
    if wanted.ranks is not None or wanted.root is not None:
        incident = found.case.incidents[0] if found.case.incidents else None
        place = incident.root.place if incident else None
        if wanted.ranks is not None:
            pairs.append(("ranks", incident and incident.ranks, wanted.ranks))
        if wanted.root is not None:
            pairs.append(("first message", place and f"{place.source}:{place.line}", wanted.root))
    mistakes = [f"{what}: {wants!r} is true, said was {says!r}" for what, says, wants in pairs if says != wants]
    complained = {one.id for one in found.case.training.issues} if found.case.training else set()
    mistakes += [f"complaint {one} is missing" for one in wanted.complaints if one not in complained]
    mistakes += [f"finding {one} is missing" for one in wanted.also if one not in ids]
    mistakes += [f"fix {one} is missing in the first finding" for one in wanted.fixes if one not in _fixes(first)]
    return mistakes + [f"{one} misleads here" for one in wanted.never if one in said]


def _fixes(finding: Finding | None) -> set[str]:
    return {fix.id for fix in finding.fixes} if finding else set()


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_what_is_true_of_the_situation_is_said(case: Path, request: pytest.FixtureRequest) -> None:
    wanted = expected(case)
    if wanted.open:
        request.applymarker(pytest.mark.xfail(reason=wanted.open, strict=True))
    assert _mistakes(diagnosis(case), wanted) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_the_report_as_json_fits_its_schema(case: Path) -> None:
    validate(json.loads(json_text(convert_diagnosis(diagnosis(case), Wording("en"), "0"))))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_report(case: Path, lang: str, bless: bool) -> None:
    golden = case / f"report.{lang}.md"
    report = markdown(redact(compose(diagnosis(case), Wording(lang), "0.0.0")))
    if bless:
        golden.write_text(report, encoding="utf-8")
    assert report == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_a_report_fits_one_screen(case: Path, lang: str) -> None:
    found = diagnosis(case)
    lines = terminal(redact(compose(found, Wording(lang), "0.0.0")), width=100, color=False).splitlines()
    in_config = min(3, len(found.case.training.issues)) if found.case.training else 0
    assert len(lines) <= 64 + 2 * in_config
