"""Slow patterns are known by their form, also within bounds; those that only look like it stay."""

from __future__ import annotations

import pytest

from oomdoctor.knowledge.lint import broken, slow, unbounded
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.pattern_cost import tries

SLOW = [
    pytest.param(r"(a|aa){1,60}$", id="branches that begin alike"),
    pytest.param(r"(?:ab|a|b){1,60}!", id="branches of which two make the third"),
    pytest.param(r"(?:a[ab]?){1,60}c", id="an optional sign that is also the next one"),
    pytest.param(r"(?:\w{1,30}\s?){1,40}:", id="words whose blanks are optional"),
    pytest.param(r'([^"]{0,100}){1,20}"', id="anything inside of anything"),
    pytest.param(r"(?:(?:x{1,20}){1,20}){1,20}y", id="three in one another"),
    pytest.param(r"[a-z]{1,40}[a-z]{1,40}[a-z]{1,40}[a-z]{1,40}[a-z]{1,40}!", id="the same five times in a row"),
    pytest.param(r".{0,900}.{0,900}.{0,900}x", id="anything three times"),
    pytest.param(r"(.{0,300}foo){1,20}bar", id="a word behind anything, again and again"),
    pytest.param(r"(?:\d{1,9}[.,]?){1,30};", id="numbers whose points are optional"),
    pytest.param(r"(?i:(?:[A-Z]{1,20}[a-z]{0,20}){1,20}!)", id="cases that are none"),
]
QUICK = [
    pytest.param(r"(?:[a-z]{1,40} ){1,50}x", id="words with blanks between them"),
    pytest.param(r"[a-z]{1,40},[a-z]{1,40},[a-z]{1,40}!", id="words with commas between them"),
    pytest.param(r"\d{1,3}(?:\.\d{1,3}){3}", id="an address"),
    pytest.param(r"(?:ab|cd|ef){1,60}!", id="branches that begin differently"),
    pytest.param(r"foo[^\n]{0,300}bar[^\n]{0,300}baz[^\n]{0,300}end", id="words with anything between them"),
    pytest.param(r"(?:,[ ]?\d{1,2}){0,31}\b", id="a list of numbers"),
    pytest.param(r"[^\n]{0,2000}", id="anything at the end"),
    pytest.param(r"(?P<a>\w{1,40})=(?P<b>\S{1,400})", id="a key and a value"),
]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_slow_pattern_is_known(pattern: str) -> None:
    assert unbounded(pattern) is not None
    assert any("ways" in why for why in slow(pattern))


@pytest.mark.parametrize("pattern", QUICK)
def test_a_quick_pattern_is_left_alone(pattern: str) -> None:
    assert tries(pattern) < 1_000_000
    assert unbounded(pattern) is None


def test_the_patterns_of_the_rules_are_far_from_slow() -> None:
    counts = {core.id: tries(whole) for core in load_pack().signatures if (whole := "|".join(each.pattern for each in core.alternatives))}
    assert {name: count for name, count in counts.items() if count > 1_500_000} == {}


@pytest.mark.parametrize("pattern", [
    pytest.param("(?P<a>x", id="a group without an end"),
    pytest.param("(" * 500 + ")" * 500, id="groups nested too deep"),
    pytest.param("(" * 50_000 + ")" * 50_000, id="groups nested far too deep"),
    pytest.param("a{4294967296}", id="a count that is no count"),
    pytest.param("[z-a]", id="a range from back to front"),
    pytest.param("(?P<a>x)(?P<a>y)", id="a name twice"),
    pytest.param("(?<=a{1,3})b", id="a look behind of no length"),
])  # fmt: skip
def test_a_broken_pattern_is_told_and_no_error(pattern: str) -> None:
    why = broken(pattern)
    assert why is not None and "\n" not in why
    assert list(slow(pattern)) == [why]
