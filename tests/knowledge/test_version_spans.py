"""Spans of releases: their ends, what is wrong with them, and how they are said."""

from __future__ import annotations

import pytest

from oomdoctor.knowledge.version_spans import is_affected, outside, span_faults, spans_text


@pytest.mark.parametrize(("version", "span", "affected"), [
    pytest.param("0.14.0", ">=0.14.0,<0.17.0", True, id="the first"),
    pytest.param("0.16.9", ">=0.14.0,<0.17.0", True, id="before the end"),
    pytest.param("0.17.0", ">=0.14.0,<0.17.0", False, id="the end is not in it"),
    pytest.param("0.13.9", ">=0.14.0,<0.17.0", False, id="before the first"),
    pytest.param("2.9.0+cu128", "==2.9.*", True, id="a local version counts as its release"),
    pytest.param("2.10.0", "==2.9.*", False, id="numbers, not letters"),
    pytest.param("2.9.1", "<=2.9.1", True, id="an end that is in it"),
])  # fmt: skip
def test_a_release_lies_in_a_span_or_not(version: str, span: str, affected: bool) -> None:
    assert is_affected(version, [span]) is affected


def test_a_build_counts_by_its_number() -> None:
    assert is_affected("b9304", ["<9305"], "b") and not is_affected("b9305", ["<9305"], "b")


@pytest.mark.parametrize(("spans", "fixed_in", "fault"), [
    pytest.param([">=1.0,<2.0"], "2.0", "", id="nothing"),
    pytest.param(["1.0 to 2.0"], None, "is not a version span", id="not the form"),
    pytest.param(["~=1.0"], None, "is not a version span", id="an operator that we do not read"),
    pytest.param([">=2.0,<1.0"], None, "contains no version at its end", id="the ends are the wrong way round"),
    pytest.param([">=1.0,<2.0"], "soon", "is not a version", id="mended in no version"),
    pytest.param([">=1.0"], "2.0", "is listed as fixed but is within the span", id="mended in a release that has it"),
])  # fmt: skip
def test_faults_of_spans(spans: list[str], fixed_in: str | None, fault: str) -> None:
    faults = list(span_faults(spans, fixed_in))
    assert (any(fault in text for text in faults)) if fault else faults == []


@pytest.mark.parametrize(("span", "en", "zh"), [
    pytest.param("==2.9.*", "2.9.x", "2.9.x", id="a series"),
    pytest.param("<0.7.0", "before 0.7.0", "0.7.0 之前", id="before"),
    pytest.param("<=2.41.0", "up to 2.41.0", "2.41.0 及以前", id="up to"),
    pytest.param(">=1.2,<=1.4", "1.2 to 1.4", "1.2 至 1.4", id="both"),
    pytest.param(">1.2", "after 1.2", "1.2 之后", id="after"),
])  # fmt: skip
def test_how_a_span_is_said(span: str, en: str, zh: str) -> None:
    text = spans_text([span])
    assert (text.get("en"), text.get("zh")) == (en, zh)


def test_a_release_just_outside() -> None:
    assert outside([">=1.0,<2.0"], None) == "2.0"
    assert outside([">=1.0"], "3.0") == "3.0"
    assert outside([">=1.0,<=2.0"], None) is None
