"""What a rule must not be; each complaint with the nearest rule that may stay."""

from __future__ import annotations

import re
from typing import Any

import pytest
from builtin_rule_set import builtin_rule_set
from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.knowledge.lint import lint_rules, signature_faults, slow
from oomdoctor.knowledge.pattern import expand
from oomdoctor.knowledge.records.signature import Example, NearMiss, SignatureRecord
from oomdoctor.knowledge.rule_set import LoadedSignature, RuleSet

HEALTHY = ["step 3 memory allocated 2.1 GiB", "[INFO] out of memory guard is armed"]
GOOD: dict[str, Any] = {
    "id": "prog-no-room",
    "kind": "host-oom",
    "certainty": "certain",
    "literals": ["no room at all"],
    "pattern": r"no room at all \((?P<requested_bytes>{size})\)",
    "source": "prog source",
    "examples": [Example(text="prog: no room at all (3 MiB)")],
    "near_misses": [NearMiss(text="prog: no room", why="another message")],
}


def complaints(**changes: Any) -> list[str]:
    record = SignatureRecord(**{**GOOD, **changes})
    return [why for why, _ in signature_faults(LoadedSignature("prog", "prog.yaml", record), HEALTHY, expand)]


def test_a_good_rule_has_no_complaint() -> None:
    assert complaints() == []


def with_literal(literal: str) -> dict[str, Any]:
    return {"literals": [literal], "examples": [Example(text=f"prog: {literal} no room at all (3 MiB)")]}


@pytest.mark.parametrize(("bad", "says", "good"), [
    pytest.param(with_literal("noroo"), "too short", with_literal("noroom"), id="five letters are found everywhere, six may stay"),
    pytest.param(with_literal("_-(  )=_ab1"), "too short", with_literal("_-(a1 b2)=c3_"), id="only letters and digits count"),
    pytest.param(with_literal("memory allocated"), "healthy line", with_literal("memory Allocated"), id="healthy runs print it, with a capital they do not"),
    pytest.param(
        with_literal("memory allocated"), "healthy line", {**with_literal("memory allocated"), "kind": "context"}, id="context may stand in healthy runs"
    ),
    pytest.param({"examples": []}, "needs an example", {}, id="a rule without an example"),
    pytest.param({"near_misses": []}, "needs a near miss", {}, id="a rule without a near miss"),
    pytest.param({"certainty": None}, "needs a certainty", {"certainty": None, "kind": "context"}, id="only context has no certainty"),
    pytest.param({"pattern": None}, "either a pattern or a family", {"pattern": None, "family": "kernel-oom"}, id="neither pattern nor family"),
    pytest.param({"family": "kernel-oom"}, "either a pattern or a family", {}, id="both pattern and family"),
    pytest.param({"examples": [Example(text="prog: no  room at all (3 MiB)")]}, "no literal appears in its example", {}, id="an example that the prefilter misses"),
    pytest.param({"pattern": "no room (at all"}, "not a regular expression", {"pattern": r"no room \(at all"}, id="a bracket that is not closed"),
    pytest.param({"pattern": "no room [^\n]*"}, "unbounded repetition", {"pattern": "no room {rest}"}, id="the rest of the line"),
])  # fmt: skip
def test_complains_about_one_and_not_about_its_neighbour(bad: dict[str, Any], says: str, good: dict[str, Any]) -> None:
    assert any(says in why for why in complaints(**bad)), complaints(**bad)
    assert complaints(**good) == []


@pytest.mark.parametrize("shown", ["examples", "near_misses"])
@pytest.mark.parametrize("kind", ["problems", "checks", "changes", "evidence", "computations", "layouts"])
def test_rules_of_every_kind_need_both_sides(kind: str, shown: str) -> None:
    first = getattr(builtin_rule_set(), kind)[0]
    bare = replace(first, **{shown: []}) if isinstance(first, Struct) else (first[0], replace(first[1], **{shown: []}))
    alone = RuleSet(signatures=(), problems=(), fixes=(), sources=(), root=builtin_rule_set().root)
    told = [
        [issue.why for issue in lint_rules(replace(alone, **{kind: (rule,)}), (), expand) if "needs a" in issue.why]
        for rule in (first, bare)
    ]
    assert [len(each) for each in told] == [0, 1]


@pytest.mark.parametrize(("bad", "good"), [
    pytest.param(r"(?:a+)+b", r"(?:a{1,9})b", id="plus in plus"),
    pytest.param(r"(?:\w*,)*end", r"\w{0,40},end", id="star in star"),
    pytest.param(r"(?:(?:x{0,5}y){0,3}){5,}", r"(?:(?:x{5}y){3}){0,9}", id="a bounded one inside an endless one"),
    pytest.param(r"x.*y", r"x.{0,300}y", id="anything without end"),
    pytest.param(r"[^\n]+", r"[^\n]{1,2000}", id="a line without end"),
    pytest.param(r"a{0,2001}", r"a{0,2000}", id="a bound that is none"),
    pytest.param(r"(?=.*x)y", r"(?=.{0,40}x)y", id="inside a look ahead"),
    pytest.param(r"(a)?(?(1)b*|c)", r"(a)?(?(1)b|c)", id="inside a condition"),
    pytest.param(r"one|two|.*", r"one|two|.{0,9}", id="in one branch"),
    pytest.param(r"(?P<all>.+?)end", r"(?P<all>.{1,80}?)end", id="a lazy one"),
    pytest.param(r"(?:a|\s+)*b", r"a\s{1,80}b", id="blanks inside a repetition"),
    pytest.param(r"a\s+b", r"a\s{1,80}b", id="blanks without end"),
])  # fmt: skip
def test_slow_patterns(bad: str, good: str) -> None:
    assert list(slow(bad)) != []
    assert list(slow(good)) == []


def test_a_pattern_that_lint_lets_pass_compiles() -> None:
    assert re.compile(expand(GOOD["pattern"]))
