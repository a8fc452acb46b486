"""No regular expression of the code can take more than linear time: each repetition stands alone or has a bound."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from oomdoctor.knowledge.lint import slow
from oomdoctor.redaction.named_values import FORMS
from oomdoctor.redaction.rules import all_rules
from oomdoctor.redaction.secret_pattern import SecretPattern

ROOT = Path(__file__).parents[1]
UNROLLED = {"oomdoctor.configs.edit.json_tree", "oomdoctor.configs.readers.json"}
"""`[^*]*(?:\\*(?!/)[^*]*)*`: what repeats inside begins with a character that the repetition before it cannot take."""


def patterns() -> list[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    """The compiled constants of all modules that need no extra."""
    files = [
        path
        for path in sorted((ROOT / "oomdoctor").rglob("*.py"))
        if path.stem != "__main__" and path.parent.name not in ("tracing", "mcp")
    ]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files]
    return [
        (f"{module}.{name}", value)
        for module in modules
        for name, value in vars(import_module(module)).items()
        if isinstance(value, re.Pattern) and module not in UNROLLED
    ]


PATTERNS = patterns()


def test_there_are_patterns_to_look_at() -> None:
    assert len(PATTERNS) > 200


def test_no_repetition_stands_inside_a_long_one() -> None:
    texts = {name: one.pattern if isinstance(one.pattern, str) else one.pattern.decode("latin-1") for name, one in PATTERNS}
    assert [(name, why) for name, text in texts.items() for why in slow(text) if "inside" in why] == []


SECRETS = [rule.pattern for rule in all_rules() if isinstance(rule, SecretPattern)]


def test_no_repetition_of_a_secret_stands_inside_a_long_one() -> None:
    assert [(text, why) for text in (*SECRETS, *FORMS) for why in slow(text) if "inside" in why] == []


@pytest.mark.parametrize("pattern", [r"(?:a{0,9}b){0,}", r"(?:[^\n]*,)*x", r"(?:(?:x|y+)z)+"])
def test_a_repetition_inside_a_long_one_is_seen(pattern: str) -> None:
    assert [why for why in slow(pattern) if "inside" in why]
