"""Versions in the order of PEP 440, whatever text they stand in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.versions import at_least, last_release, parse_version, within


@pytest.mark.parametrize(("older", "newer"), [
    pytest.param("2.3.0rc1", "2.3.0", id="a candidate is older than its release"),
    pytest.param("2.6.0.dev20241001+cu124", "2.6", id="a nightly build is older than its release"),
    pytest.param("2.6.0a0+df5bbc0.nv24.12", "2.6.0", id="a build of NVIDIA's from before the release"),
    pytest.param("2.5.1", "2.6.0.dev20241001", id="a nightly build is newer than the release before"),
    pytest.param("0.6.3", "0.6.3.post1", id="a post-release is newer"),
    pytest.param("2.9.1", "2.10.0", id="numbers, not digits"),
    pytest.param("470.42", "470.42.01", id="drivers with a third number"),
    pytest.param("470.42.01", "470.103.01", id="drivers"),
    pytest.param("11.8", "12.4", id="CUDA"),
])  # fmt: skip
def test_which_of_two_is_older(older: str, newer: str) -> None:
    assert (at_least(newer, older), at_least(older, newer)) == (True, False)


@pytest.mark.parametrize(("one", "other"), [
    pytest.param("2.3", "2.3.0", id="a missing number is 0"),
    pytest.param("418.87.00", "418.87.0", id="a number with a leading zero"),
    pytest.param("v4.44.2", "4.44.2", id="a tag"),
    pytest.param(" 2.1.0\n", "2.1.0", id="blanks around it"),
    pytest.param("2.1.2-py310_cuda12.1", "2.1.2", id="a build of conda's counts as its numbers"),
])  # fmt: skip
def test_which_are_the_same(one: str, other: str) -> None:
    assert parse_version(one) == parse_version(other)


@pytest.mark.parametrize(("version", "since", "until", "answer"), [
    pytest.param("4.57.3", None, "4.57", True, id="until names a series"),
    pytest.param("4.57.3", None, "4.57.2", False, id="until names a release"),
    pytest.param("4.58.0rc1", None, "4.57", False, id="a candidate of the next series"),
    pytest.param("4.57.0.post1", None, "4.57.0", True, id="a post-release of the last one"),
    pytest.param("4", None, "4.57", True, id="a version with fewer numbers"),
    pytest.param("2.3.1+cu121", "2.3", "2.3", True, id="both ends belong to it; what a build was made for does not count"),
    pytest.param("2.3.0rc1", "2.3", None, False, id="a candidate is before the span"),
    pytest.param("0.0.1", None, None, True, id="both ends open"),
    pytest.param("unknown", "2.3", None, None, id="no version"),
    pytest.param(None, "2.3", None, None, id="nothing known"),
])  # fmt: skip
def test_whether_a_version_lies_in_a_span(version: str | None, since: str | None, until: str | None, answer: bool | None) -> None:
    assert within(version, since, until) is answer


@pytest.mark.parametrize("text", [None, "", "main", "nightly", "+cu121", "٣.١", "." * 200])
def test_what_states_no_version(text: str | None) -> None:
    assert parse_version(text) is None and at_least(text, "1.0") is None


@given(st.one_of(st.text(max_size=300), st.from_regex(r"[0-9]{1,150}(\.[0-9]{1,40}){0,9}[a-z.+_-]{0,9}[0-9]{0,120}", fullmatch=True)))
def test_any_text_is_a_version_or_none(text: str) -> None:
    version = parse_version(text)
    assert version is None or at_least(text, str(version)) is not None


@pytest.mark.parametrize(("text", "newer", "older"), [
    pytest.param("0.5", "0.5.23", "0.6.0.dev1", id="a series is its last release"),
    pytest.param("0.10", "0.10.2", "0.11", id="and of numbers with two digits"),
    pytest.param("1", "1.99.0", "2.0", id="of one number"),
])  # fmt: skip
def test_two_numbers_are_the_last_release_of_a_series(text: str, newer: str, older: str) -> None:
    assert at_least(last_release(text), newer) is True
    assert at_least(last_release(text), older) is False


@pytest.mark.parametrize("text", ["0.8.5", "0.6.3.post1", "0.9rc1", "0.11.dev0", "", "nightly", None])
def test_what_is_no_series_stays_as_it_is(text: str | None) -> None:
    assert last_release(text) == text
