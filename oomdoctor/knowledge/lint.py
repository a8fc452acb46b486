"""What a rule must not be: too eager, too slow, or without proof. Each complaint says what to do instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Union

from msgspec import Struct

from oomdoctor.knowledge.pattern import sre_constants, sre_parse
from oomdoctor.knowledge.pattern_cost import tries
from oomdoctor.knowledge.records.bug import BugRecord
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.knowledge.records.check import CheckRecord
from oomdoctor.knowledge.records.condition import AllOf, AnyOf, Condition, NotThat, TextCondition
from oomdoctor.knowledge.records.evidence import ComputationRecord, EvidenceRecord
from oomdoctor.knowledge.records.layout import LayoutRecord
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.references import Wrong, wrong_references
from oomdoctor.knowledge.rule_set import LoadedSignature, RuleSet
from oomdoctor.knowledge.table_lint import table_files, wrong_table
from oomdoctor.knowledge.yaml_file import place_of_word

_Shown = Union[SignatureRecord, ProblemRecord, CheckRecord, ChangeRecord, BugRecord, EvidenceRecord, ComputationRecord, LayoutRecord]
_LETTERS = 6
_LETTERS_OF_WORDS = 5
"""A line with any error is read word by word."""
_RARE = 2
"""How many letters one outside of ASCII counts for: few logs hold any."""
_LONG = 2000
"""A repetition that may run further than this is as good as unbounded."""
_MOST_TRIES = 2_000_000
"""Some hundredths of a second at each place of a text; the patterns of the rules stay below half of it."""
_MANY_GROUPS = 80
_LONGEST_PATTERN = 20_000
_REPEATS = (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT)


class RuleIssue(Struct, frozen=True):
    """One thing that is wrong with one rule, and where it stands."""

    path: str
    line: int
    column: int
    id: str
    why: str


def lint_rules(
    rules: RuleSet, healthy: Sequence[str], expand: Callable[[str], str], chosen: Callable[[str], bool] = lambda _path: True
) -> Iterator[RuleIssue]:
    """Yield what is wrong with the rules; of signatures, whose patterns take milliseconds each, only those of `chosen` files are looked at.

    `healthy` are lines of runs without failure, `expand` turns a pattern into its regex.
    """
    for loaded in rules.signatures:
        for why, word in signature_faults(loaded, healthy, expand) if chosen(loaded.path) else ():
            yield issue_at(Wrong(loaded.path, loaded.record.id, why, word))
    for path, id_, pattern in other_patterns(rules):
        fault = broken(pattern) or unbounded(pattern)
        if fault is not None:
            yield issue_at(Wrong(path, id_, fault, "text"))
    for path, change in rules.changes:
        for why in _change(change):
            yield issue_at(Wrong(path, change.id, why))
    for path, record in _with_examples(rules):
        yield from (issue_at(Wrong(path, record.id, why)) for why in _unproven(record))
    yield from map(issue_at, wrong_references(rules))
    fixes = [fix.id for _, fix in rules.fixes]
    for file in table_files(Path(rules.root)) if rules.root else ():
        for line, wrong in wrong_table(file, fixes):
            yield RuleIssue(wrong.path, line, 1, wrong.id, wrong.why)


def _with_examples(rules: RuleSet) -> Iterator[tuple[str, _Shown]]:
    """Yield what has to have examples besides signatures, each with its file."""
    yield from rules.problems
    yield from rules.checks
    yield from rules.changes
    yield from ((path, bug) for path, file in rules.bugs for bug in file.bugs if bug.shown)
    root = Path(rules.root)
    yield from ((str(root / "evidence.yaml"), record) for record in rules.evidence)
    yield from ((str(root / "computations.yaml"), record) for record in rules.computations)
    yield from ((str(root / "layouts.yaml"), record) for record in rules.layouts)


def _unproven(record: _Shown) -> Iterator[str]:
    if not record.examples:
        yield "needs an example: a message it recognizes, and what it says about it"
    if not record.near_misses:
        yield "needs a near miss: similar text that must not match it, and why"


def other_patterns(rules: RuleSet) -> Iterator[tuple[str, str, str]]:
    """Yield the patterns that are not of signatures: the file, the id of the record, and the pattern."""
    for path, problem in rules.problems:
        yield from ((path, problem.id, pattern) for pattern in _texts(problem.when))
    for path, file in rules.bugs:
        for bug in file.bugs:
            conditions = [sign.when for sign in bug.shown if sign.when is not None]
            yield from ((path, bug.id, pattern) for when in conditions for pattern in _texts(when))
    for path, request in rules.requests:
        for sign in request.signs:
            patterns = (sign.message, sign.frame, sign.near, *(_texts(sign.when) if sign.when is not None else ()))
            yield from ((path, request.id, pattern) for pattern in patterns if pattern is not None)
    for path, framework in rules.frameworks:
        if framework.in_logs is not None and framework.in_logs.pattern is not None:
            yield path, framework.framework, framework.in_logs.pattern
    lying = str(Path(rules.root) / "layouts.yaml")
    yield from ((lying, layout.id, layout.pattern) for layout in rules.layouts)


def _texts(when: Condition) -> Iterator[str]:
    if isinstance(when, TextCondition):
        yield when.pattern
    elif isinstance(when, NotThat):
        yield from _texts(when.part)
    elif isinstance(when, (AllOf, AnyOf)):
        for part in when.parts:
            yield from _texts(part)


def issue_at(wrong: Wrong) -> RuleIssue:
    """Return a mistake with its place in the file."""
    return RuleIssue(wrong.path, *place_of_word(wrong.path, wrong.id, wrong.word), wrong.id, wrong.why)


def signature_faults(loaded: LoadedSignature, healthy: Sequence[str], expand: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield each mistake, and the word at which it stands."""
    record = loaded.record
    if record.kind != "context" and record.certainty is None:
        yield "needs a certainty: certain, likely or possible", "kind"
    if record.says is not None:
        return
    yield from _literals(record, healthy)
    if (record.pattern is None) == (record.family is None):
        yield "needs either a pattern or a family", "pattern"
    if record.pattern is not None:
        yield from ((why, "pattern") for why in slow(expand(record.pattern)))
    yield from ((why, "") for why in _unproven(record))
    for example in record.examples:
        # A text begins like a line: a literal may begin with the end of the line before it.
        if not any(literal in f"\n{example.text}" for literal in record.literals):
            yield f"no literal appears in its example: {example.text[:60]!r}", "examples"


def _literals(record: SignatureRecord, healthy: Sequence[str]) -> Iterator[tuple[str, str]]:
    least = _LETTERS_OF_WORDS if record.family == "words" else _LETTERS
    for literal in record.literals:
        if sum(1 if letter.isascii() else _RARE for letter in re.findall(r"[^\W_]|-(?=\d)|=(?==|\d)", literal)) < least:
            yield f"the literal {literal!r} is too short: at least {least} letters or digits", "literals"
        if record.kind != "context":
            line = next((line for line in healthy if literal in line), None)
            if line is not None:
                yield f"the literal {literal!r} appears in a healthy line: {line[:80]!r}", "literals"


def slow(pattern: str) -> Iterator[str]:
    """Yield why a regular expression could take more than linear time."""
    wrong = broken(pattern)
    if wrong is not None:
        yield wrong
        return
    tree = sre_parse.parse(pattern, re.MULTILINE)
    if _nested(tree, inside=False):
        yield "a repetition inside a long repetition: time could grow with the square of the line length or worse"
    if any(_endless(tree)):
        yield "an unbounded repetition of anything: give it an upper bound such as {0,300}"
    many = unbounded(pattern)
    if many is not None:
        yield many


def broken(pattern: str) -> str | None:
    """Return why a pattern cannot be used at all; None where it can."""
    if len(pattern) > _LONGEST_PATTERN:
        return f"the pattern is longer than {_LONGEST_PATTERN:,} characters"
    try:
        re.compile(pattern, re.MULTILINE)
        if pattern.count("(") > _MANY_GROUPS:
            tries(pattern)  # it goes deeper into a pattern than compiling does
    except (re.error, OverflowError) as why:
        return f"the pattern is not a regular expression: {why}"
    except RecursionError:
        return "the pattern is nested too deeply"
    return None


def unbounded(pattern: str) -> str | None:
    """Return why a pattern could take for ever on one text; None where it cannot."""
    count = tries(pattern)
    if count <= _MOST_TRIES:
        return None
    often = "more than a trillion" if count > 1e12 else f"{count:,.0f}"
    return (
        f"may try {often} ways at one position: a repeated part must not begin like what follows it, and the branches of a "
        "repeated choice must begin differently"
    )


def _nested(tree: Any, *, inside: bool) -> bool:
    for code, value in tree:
        if code in _REPEATS:
            low, high, inner = value
            variable = high != low and high > 1
            if inside and variable:
                return True
            if _nested(inner, inside=inside or (variable and high > _LONG)):
                return True
        elif any(_nested(inner, inside=inside) for inner in _parts(code, value)):
            return True
    return False


def _endless(tree: Any) -> Iterator[bool]:
    for code, value in tree:
        if code in _REPEATS:
            _, high, inner = value
            yield high > _LONG
            yield from _endless(inner)
        else:
            for inner in _parts(code, value):
                yield from _endless(inner)


def _parts(code: Any, value: Any) -> list[Any]:
    if code is sre_constants.SUBPATTERN:
        return [value[-1]]
    if code is sre_constants.BRANCH:
        return list(value[1])
    if code in (sre_constants.ASSERT, sre_constants.ASSERT_NOT):
        return [value[1]]
    if code is sre_constants.GROUPREF_EXISTS:
        return [branch for branch in value[1:] if branch is not None]
    return []


def _change(change: ChangeRecord) -> Iterator[str]:
    ways = [change.newer, change.larger, change.tightest_first]
    if sum(way is not None for way in ways) > 1:
        yield "can be compared in only one way: newer, larger or tightest_first"
    if (change.newer is None) != (change.since is None):
        yield "newer and since must be used together"
