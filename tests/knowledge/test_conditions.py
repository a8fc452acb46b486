"""What rule files may write as a condition, and the plain condition that it stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oomdoctor.errors import RuleError
from oomdoctor.knowledge.conditions import fault, plain
from oomdoctor.knowledge.load import load_conditions

A, B = {"fact": "a", "is": 1}, {"fact": "b", "is": 2}
NAMED = {"both": {"all": [A, B]}, "either": {"any": [A, B]}}
KNOWN = {"fact": "x", "known": True}


@pytest.mark.parametrize(("written", "expected"), [
    pytest.param({"fact": "x", "gt": 1, "open": True}, {"fact": "x", "gt": 1, "open": True}, id="a comparison whose answer may be open"),
    pytest.param({"all": [{"condition": "both"}, KNOWN]}, {"all": [A, B, KNOWN]}, id="a name in a list"),
    pytest.param({"not": {"condition": "either"}}, {"not": {"any": [A, B]}}, id="a name that is turned round"),
    pytest.param({"all": [{"all": [A, B]}, KNOWN]}, {"all": [{"all": [A, B]}, KNOWN]}, id="a list in a list stays as it is written"),
    pytest.param({"fact": "x", "known": False}, {"fact": "x", "known": False}, id="a plain one"),
])  # fmt: skip
def test_stands_for(written: dict[str, Any], expected: dict[str, Any]) -> None:
    assert fault(written) is None
    assert plain(written, NAMED) == expected


@pytest.mark.parametrize(("written", "at", "why"), [
    pytest.param({"fact": "x", "gt": 1, "lt": 3}, "$", "one of is, lt", id="two comparisons"),
    pytest.param({"fact": "x", "known": False, "gt": 1}, "$", "compared by one of is, lt, le, gt, ge, in, contains, known, optionally with `open: true`", id="unknown and compared"),
    pytest.param({"all": [{"fact": "x", "known": True, "gt": 1}]}, "$.all[0].known", "applies only to known facts", id="known and compared"),
    pytest.param({"fact": "x", "open": True}, "$", "compared by one of is, lt, le, gt, ge, in, contains, known, optionally with `open: true`", id="open, and nothing asked"),
    pytest.param({"all": [{"fact": "x", "above": 1}]}, "$.all[0].above", "unknown operator 'above'", id="an operator that does not exist"),
    pytest.param({"any": [A, {"evnt": "x"}]}, "$.any[1].evnt", "unknown word 'evnt'", id="a word that does not exist"),
    pytest.param({"condition": "both", "fact": "x"}, "$.condition", "unknown operator 'condition'", id="a name beside something else"),
    pytest.param({"not": 3}, "$.not", "a condition is a mapping", id="a number"),
])  # fmt: skip
def test_is_malformed(written: dict[str, Any], at: str, why: str) -> None:
    wrong = fault(written)
    assert wrong is not None and wrong[0] == at and why in wrong[1]


def test_a_condition_may_use_those_above_it(tmp_path: Path) -> None:
    path = tmp_path / "conditions.yaml"
    path.write_text("conditions:\n  - {id: one, says: x, when: {fact: a, is: 1}}\n  - {id: two, says: x, when: {not: {condition: one}}}\n")
    assert load_conditions(path)["two"] == {"not": {"fact": "a", "is": 1}}


@pytest.mark.parametrize(("name", "line", "why"), [
    pytest.param("two", 2, "unknown condition 'two'", id="one below it"),
    pytest.param("oen", 2, "unknown condition 'oen'", id="a misspelt name"),
])  # fmt: skip
def test_a_condition_must_be_there(name: str, line: int, why: str, tmp_path: Path) -> None:
    path = tmp_path / "conditions.yaml"
    path.write_text(
        f"conditions:\n  - {{id: one, says: x, when: {{condition: {name}}}}}\n  - {{id: two, says: x, when: {{fact: a, is: 1}}}}\n"
    )
    with pytest.raises(RuleError, match=why) as raised:
        load_conditions(path)
    assert raised.value.line == line
