"""The rules of the project as their files say, read once for all tests of a process: reading them takes half a second."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from oomdoctor.knowledge.load import load_rules
from oomdoctor.knowledge.pack import builtin_rules
from oomdoctor.knowledge.rule_set import RuleSet


@cache
def builtin_rule_set() -> RuleSet:
    return load_rules(Path(builtin_rules()))
