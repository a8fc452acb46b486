"""The notation of patterns: blanks, values, and what must stand in a text for one to match."""

from __future__ import annotations

import re
import warnings
from functools import cache

import pytest
from builtin_rule_set import builtin_rule_set
from hypothesis import example, given
from hypothesis import strategies as st

from oomdoctor.knowledge.compiled.compile import matching
from oomdoctor.knowledge.pattern import MACROS, alternatives, expand, find_needs, fragments
from oomdoctor.knowledge.rule_set import LoadedSignature
from oomdoctor.parse.signature import Signature


@pytest.mark.parametrize(("pattern", "text"), [
    pytest.param("out of memory", "out\n   of\tmemory", id="a blank is any white space"),
    pytest.param(r"a\ b", "a b", id="a blank behind a backslash is a blank"),
    pytest.param("a[ b]c", "a c", id="a blank in a class is a blank"),
    pytest.param("a[] b]c", "a]c", id="a class that begins with its end"),
    pytest.param("a[^] b]c", "axc", id="a class of everything else"),
    pytest.param(r"a[\]x y]c", "a]c", id="a bracket behind a backslash"),
    pytest.param(r"used \[ here \]", "used   [\there ]", id="brackets that are no class"),
    pytest.param("{size} of {size}", "1.25 GiB of 81kB", id="sizes"),
    pytest.param("{int}/{num}", "-3/2.50", id="numbers"),
    pytest.param("on {word}: {path}", "on gpu-1:  /a/b.py", id="words and paths"),
    pytest.param("end{rest}", "end of the line", id="the rest"),
    pytest.param("x{2,3}", "xxx", id="a count is no value"),
])  # fmt: skip
def test_matches(pattern: str, text: str) -> None:
    assert re.fullmatch(expand(pattern), text)


@pytest.mark.parametrize(("pattern", "text"), [
    pytest.param("out of memory", "outofmemory", id="a blank is not nothing"),
    pytest.param(r"a\ b", "a\tb", id="a blank behind a backslash is no tab"),
    pytest.param("a[ b]c", "a\tc", id="a blank in a class is no tab"),
    pytest.param("end{rest}", "end\nof", id="the rest ends with the line"),
    pytest.param("{word}", "two words", id="a word is one word"),
])  # fmt: skip
def test_does_not_match(pattern: str, text: str) -> None:
    assert not re.fullmatch(expand(pattern), text)


WORDS = st.lists(st.text(min_size=1, max_size=6).filter(lambda word: not re.search(r"\s", word)), min_size=1, max_size=5)
BLANKS = st.text(" \t\n", min_size=1, max_size=3)


@given(WORDS, st.data())
def test_an_expanded_text_matches_itself_with_any_white_space(words: list[str], data: st.DataObject) -> None:
    pattern = " ".join(re.escape(word) for word in words)
    spread = words[0] + "".join(data.draw(BLANKS) + word for word in words[1:])
    assert re.fullmatch(expand(pattern), spread)
    assert re.fullmatch(expand(pattern), " ".join(words))


@example(" ?", "")
@example("a *b", "ab")
@example("a +b", "a  b")
@example("a {2}b", "a  b")
@example("a {b", "a {b")
@given(st.text("ab1 .[]^-\\+?*(|){}", max_size=12), st.text("ab1 .[]^-", max_size=12))
def test_expanding_changes_only_what_blanks_match(pattern: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of brackets in brackets
        try:
            plain = re.compile(pattern)
        except re.error:
            return
        wider = re.compile(expand(pattern))
    found = plain.search(text)
    if found:
        assert wider.search(text)
    if " " not in pattern:
        assert expand(pattern) == pattern


@cache
def loaded() -> tuple[LoadedSignature, ...]:
    return builtin_rule_set().signatures


def test_every_rule_matches_what_its_plain_pattern_matches() -> None:
    assert [one.record.id for one in loaded() if one.record.pattern and not matches_as_plain(one)] == []


def matches_as_plain(one: LoadedSignature) -> bool:
    pattern = one.record.pattern or ""
    plain = pattern
    for name, form in MACROS.items():
        plain = plain.replace("{" + name + "}", f"(?:{form})")
    wide, needs = re.compile(expand(pattern), re.MULTILINE), find_needs(expand(pattern))
    for text in (shown.text for shown in one.record.examples):
        matches = list(wide.finditer(text))
        for plainly in re.finditer(plain, text, re.MULTILINE):
            if not any(match.start() < plainly.end() and plainly.start() < match.end() for match in matches):
                return False
        if not all(needs is None or any(part in match[0][: needs.reach + len(part)] for part in needs.texts) for match in matches):
            return False
    return True


@pytest.mark.parametrize(("expression", "needed"), [
    pytest.param(r"CUDA error: (?P<what>\w{1,9})", ["CUDA error: "], id="the plain beginning"),
    pytest.param(r"(?:maybe )?certainly", ["certainly"], id="what is optional is not needed"),
    pytest.param(r"(?:first|second)", ["first", "second"], id="of a choice one is needed"),
    pytest.param(r"\d+(?:first|(?:next|last)\b)", ["first", "next", "last"], id="of a choice in a choice as well"),
    pytest.param(r"(?:first|\d+)", None, id="a choice with a branch that could be anything"),
    pytest.param(r"(?:first|second)?", None, id="a choice that need not be made"),
    pytest.param(r"a(?:bcde)f", ["abcdef"], id="a group is read through"),
    pytest.param(r"ab\s+cd", None, id="too short to be worth a look"),
    pytest.param(r"(?i:quietly)", None, id="any case"),
    pytest.param(r"(?i)quietly", None, id="any case, said at the start"),
    pytest.param(r"(?!never)always", ["always"], id="what must not stand there is not needed"),
    pytest.param(r"(?:abcd){0,3}efgh", ["efgh"], id="what may be repeated not at all"),
    pytest.param(r"one[_-]two", ["one_two", "one-two"], id="a character that is one of two"),
    pytest.param(r"one[a-z]four", ["four"], id="a character that is one of many"),
    pytest.param(r"[ab][ab][ab]cdef", ["acdef", "bcdef"], id="no more forms than are worth a look"),
    pytest.param(
        r"(?:[ab]one![ab]|[cd]two![cd]|[ef]six![ef]|[gh]ten![gh])", ["one!", "two!", "six!", "ten!"], id="a choice that has too many forms"
    ),
])  # fmt: skip
def test_what_a_text_must_hold(expression: str, needed: list[str] | None) -> None:
    assert fragments(expression) == needed


@pytest.mark.parametrize(("expression", "reach"), [
    pytest.param(r"always", 0, id="at the start"),
    pytest.param(r"\d{1,6} always", 6, id="behind what has a longest form"),
    pytest.param(r"(?:one|three)(?P<number>\d{1,6})always", 11, id="behind a choice, and inside a group"),
    pytest.param(r"\b(?<=x)(?=.{9})always", 0, id="what looks around takes no place"),
    pytest.param(r"(?:\d{1,3}first|\d{1,5}next)", 5, id="of a choice the farthest"),
])  # fmt: skip
def test_how_far_before_that_a_match_begins(expression: str, reach: int) -> None:
    needs = find_needs(expression)
    assert needs is not None
    assert needs.reach == reach


@pytest.mark.parametrize(("expression", "branches"), [
    pytest.param("one|two", ["one", "two"], id="two branches"),
    pytest.param("(?:one|two) three|four", ["(?:one|two) three", "four"], id="a choice in a group belongs to its branch"),
    pytest.param(r"[|(]one|[^]|]two|\|three|\(four", ["[|(]one", "[^]|]two", r"\|three", r"\(four"], id="signs in classes and behind backslashes"),
    pytest.param(r"(a)\1|b", [r"(a)\1|b"], id="groups that are named by number"),
    pytest.param("(?i)one|two", ["(?i)one|two"], id="flags for all"),
    pytest.param("one|", ["one", ""], id="an empty branch"),
    pytest.param("", [], id="nothing"),
])  # fmt: skip
def test_branches_of_a_pattern(expression: str, branches: list[str]) -> None:
    assert alternatives(expression) == branches


def test_trying_only_the_branches_that_a_text_can_hold_finds_what_the_whole_pattern_finds() -> None:
    for one in loaded():
        whole = re.compile(expand(one.record.pattern or "(?!)"), re.MULTILINE)
        signature = Signature(matching(one))
        texts = [*(shown.text for shown in one.record.examples), *(shown.text for shown in one.record.near_misses)]
        for text in (*texts, "\n".join(texts)):
            assert [(match.start, match.end) for match in signature.matches(text)] == [match.span() for match in whole.finditer(text)]
