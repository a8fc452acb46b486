"""Every rule holds its own examples and leaves its near misses alone; no rule breaks the lint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from builtin_rule_set import builtin_rule_set
from msgspec import Struct

from oomdoctor.api.examples import (
    check_change,
    check_computation,
    check_evidence,
    check_holding,
    check_problem,
    check_signature,
    diagnose_example,
)
from oomdoctor.case.event import STATEMENTS
from oomdoctor.knowledge.lint import lint_rules
from oomdoctor.knowledge.load import rule_files
from oomdoctor.knowledge.pack import Pack, builtin_rules, load_pack
from oomdoctor.knowledge.pattern import expand
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.knowledge.records.condition import EventCondition
from oomdoctor.knowledge.records.evidence import ComputationRecord, HoldingRecord
from oomdoctor.knowledge.records.problem import CaseExample
from oomdoctor.knowledge.records.signature import LEDGER, LEDGER_BEGINS, Example, SignatureRecord
from oomdoctor.knowledge.yaml_file import read_yaml
from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.parse.families.registry import FAMILIES
from oomdoctor.parse.recogniser import Recogniser
from oomdoctor.snapshots.sites import Holdings

ROOT = Path(builtin_rules())


@cache
def pack() -> Pack:
    return load_pack()


@cache
def recogniser() -> Recogniser:
    return Recogniser(pack())


def test_every_signature_recognises_its_examples_and_only_them() -> None:
    assert [wrong for loaded in builtin_rule_set().signatures for wrong in check_signature(loaded, recogniser())] == []


def test_every_problem_explains_its_examples_and_only_them() -> None:
    assert [wrong for problem in builtin_rule_set().problems for wrong in check_problem(*problem, pack())] == []


@pytest.mark.parametrize("number", [pytest.param(number, id=evidence.id) for number, evidence in enumerate(builtin_rule_set().evidence)])
def test_evidence_is_a_sign_in_its_examples_and_only_there(number: int) -> None:
    assert list(check_evidence("", builtin_rule_set().evidence[number], pack())) == []


@pytest.mark.parametrize("computation", [pytest.param(record, id=record.id) for record in builtin_rule_set().computations])
def test_a_computation_is_told_by_its_examples_and_only_them(computation: ComputationRecord) -> None:
    assert list(check_computation("", computation, ComputationFinder(pack().computations))) == []


@pytest.mark.parametrize("holding", [pytest.param(record, id=record.id) for record in builtin_rule_set().holdings])
def test_a_holding_is_told_by_its_examples_and_only_them(holding: HoldingRecord) -> None:
    holdings = Holdings(builtin_rule_set().holdings, pack().computations)
    assert list(check_holding("", holding, holdings)) == []


def test_what_is_computed_is_held_for_one_thing() -> None:
    """A block whose frames show what is computed is never without a name; what is listed twice would depend on the order."""
    said = [name for holding in builtin_rule_set().holdings for name in holding.computations]
    assert sorted(said) == sorted(record.id for record in builtin_rule_set().computations)


@pytest.mark.parametrize("change", [pytest.param(record, id=record.id) for _, record in builtin_rule_set().changes])
def test_a_change_means_what_its_examples_say(change: ChangeRecord) -> None:
    assert list(check_change("", change)) == []


def test_every_message_of_a_failure_has_a_meaning() -> None:
    """Whoever adds a message names it in a problem too: "memory ran out" without a finding leaves the reader alone."""
    records = [loaded.record for loaded in builtin_rule_set().signatures]
    failures = [record for record in records if record.kind != "context" and record.outcome == "failure"]
    assert [(record.id, example.text) for record in failures for example in record.examples if not has_meaning(record, example)] == []


def has_meaning(record: SignatureRecord, example: Example) -> bool:
    observed = {record.id: example.fields} if record.says is not None else {}
    result = diagnose_example(CaseExample(name=record.id, log="" if observed else example.text, observed=observed), pack())
    named = result.case.verdict.reason in ("other-error", "unknown-memory-error")  # the headline says all that is known
    return bool(result.findings) or named or not result.case.incidents


def test_no_rule_is_too_eager_too_slow_or_without_proof() -> None:
    healthy = (ROOT / "healthy.txt").read_text(encoding="utf-8").splitlines()
    assert [f"{issue.id}: {issue.why}" for issue in lint_rules(builtin_rule_set(), healthy, expand)] == []


def test_what_messages_tell_is_asked_for_and_what_is_asked_for_is_told() -> None:
    told = {topic for loaded in builtin_rule_set().signatures for topic in loaded.record.tells}
    asked = {topic for when in conditions() for topic in listed(when.tells)}
    topics = set(builtin_rule_set().topics)
    assert told - set(STATEMENTS) == topics and topics <= asked | {LEDGER, LEDGER_BEGINS}


def test_a_rule_that_asks_for_one_message_says_why() -> None:
    ids = [name for when in conditions() for name in listed(when.event)]
    lines = [line for path in rule_files(ROOT) if not {"signatures", "bugs"} & set(path.parts) for line in reasons(path)]
    assert 0 < len(ids) <= 60
    assert [line for line in lines if "#" not in line] == []


def conditions() -> Iterator[EventCondition]:
    """Yield what all rules ask of events."""
    rules = builtin_rule_set()
    written: list[object] = [rules.problems, rules.evidence, rules.fixes, rules.checks, rules.changes, rules.frameworks]
    while written:
        value = written.pop()
        if isinstance(value, EventCondition):
            yield value
        elif isinstance(value, (list, tuple)):
            written.extend(value)
        elif isinstance(value, dict):
            written.extend(value.values())
        elif isinstance(value, Struct):
            written.extend(getattr(value, name) for name in value.__struct_fields__)


def listed(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else names


def reasons(path: Path) -> list[str]:
    """Return each line of a file that asks for a message by its id, behind the line above it."""
    lines = ["", *path.read_text(encoding="utf-8").splitlines()]
    return [
        f"{above.strip() if above.strip().startswith('#') else ''} {line}"
        for above, line in zip(lines, lines[1:])
        if re.search(r"[{ -]event: ", line)
    ]


def test_every_family_that_a_rule_names_exists() -> None:
    assert {loaded.record.family for loaded in builtin_rule_set().signatures if loaded.record.family} <= set(FAMILIES)


def test_texts_are_in_both_languages() -> None:
    texts = [text for _, record in builtin_rule_set().problems for text in (record.title, record.why)]
    texts += [text for _, record in builtin_rule_set().fixes for text in (record.title, record.how)]
    assert [text.zh for text in texts if not any("\u4e00" <= char <= "\u9fff" for char in text.zh)] == []


def test_every_fix_that_changes_something_says_where_or_how() -> None:
    empty = [record.id for _, record in builtin_rule_set().fixes if not record.settings and not record.command and len(record.how.en) < 20]
    assert empty == []


def test_lists_and_maps_in_a_line_are_short() -> None:
    """What does not fit into 140 characters has a line for each of its parts."""
    assert {str(path.relative_to(ROOT)): long for path in rule_files(ROOT) if (long := long_flow_lines(path))} == {}


def long_flow_lines(path: Path) -> list[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    nodes = [read_yaml(path).node]
    long: set[int] = set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, (yaml.MappingNode, yaml.SequenceNode)) and node.flow_style:
            long |= {line + 1 for line in range(node.start_mark.line, node.end_mark.line + 1) if len(lines[line]) > 140}
        elif isinstance(node, yaml.MappingNode):
            nodes += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            nodes += node.value
    return sorted(long)
