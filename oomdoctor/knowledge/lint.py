"""What a rule must not be: too eager, too slow, or without proof. Each complaint says what to do instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from oomdoctor.knowledge.load import LoadedSignature, RuleSet
from oomdoctor.knowledge.pattern import sre_constants, sre_parse
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.knowledge.records.signature import SignatureRecord

_LETTERS = 6
_LONG = 2000
"""A repetition that may run further than this is as good as unbounded."""
_REPEATS = (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT)


class RuleIssue(Struct, frozen=True):
    """One thing that is wrong with one rule."""

    path: str
    id: str
    why: str


def lint_rules(rules: RuleSet, healthy: Sequence[str], expand: Any) -> Iterator[RuleIssue]:
    """Complaints about all rules. `healthy` are lines that programs print when all is well; `expand` turns a pattern into its regex."""
    for loaded in rules.signatures:
        for why in _signature(loaded, healthy, expand):
            yield RuleIssue(loaded.path, loaded.record.id, why)
    yield from _references(rules)
    for path, change in rules.changes:
        for why in _change(change):
            yield RuleIssue(path, change.id, why)


def _signature(loaded: LoadedSignature, healthy: Sequence[str], expand: Any) -> Iterator[str]:
    record = loaded.record
    yield from _literals(record, healthy)
    if (record.pattern is None) == (record.family is None):
        yield "needs either a pattern or a family"
    if record.pattern is not None:
        yield from slow(expand(record.pattern))
    if record.kind != "context" and record.certainty is None:
        yield "needs a certainty: certain, likely or possible"
    if not record.examples:
        yield "needs an example: a text that it recognises, with the fields that it finds"
    if not record.near_misses:
        yield "needs a near miss: a text close to it that must leave it quiet, and why"
    for example in record.examples:
        # A text begins like a line: a literal may begin with the end of the line before it.
        if not any(literal in f"\n{example.text}" for literal in record.literals):
            yield f"no literal stands in its example: {example.text[:60]!r}"


def _literals(record: SignatureRecord, healthy: Sequence[str]) -> Iterator[str]:
    for literal in record.literals:
        if len(re.findall(r"[^\W_]", literal)) < _LETTERS:
            yield f"the literal {literal!r} is too short: at least {_LETTERS} letters or digits"
        if record.kind != "context":
            line = next((line for line in healthy if literal in line), None)
            if line is not None:
                yield f"the literal {literal!r} stands in a healthy line: {line[:80]!r}"


def slow(pattern: str) -> Iterator[str]:
    """Why a regular expression could take more than linear time."""
    try:
        tree = sre_parse.parse(pattern, re.MULTILINE)
    except re.error as why:
        yield f"the pattern is not a regular expression: {why}"
        return
    if _nested(tree, inside=False):
        yield "a repetition inside a long repetition: time could grow with the square of the line or worse"
    if any(_endless(tree)):
        yield "an unbounded repetition of anything: give it an upper bound such as {0,300}"


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
        return [one for one in value[1:] if one is not None]
    return []


def _change(change: ChangeRecord) -> Iterator[str]:
    ways = [change.newer, change.larger, change.tightest_first]
    if sum(way is not None for way in ways) > 1:
        yield "is compared in one way: newer, larger or tightest_first"
    if (change.newer is None) != (change.since is None):
        yield "newer and since go together"
    if not change.fact.startswith(("version.", "training.", "alloc.", "variable.", "card.", "host.", "model.", "framework")):
        yield f"the fact {change.fact!r} is none that two sides share (oomdoctor/comparing/facts.py)"


def _references(rules: RuleSet) -> Iterator[RuleIssue]:
    """Names that point nowhere."""
    fixes = {fix.id for _, fix in rules.fixes}
    problems = {problem.id for _, problem in rules.problems}
    sources = {source.id: {claim.id for claim in source.claims} for source in rules.sources}
    for path, problem in rules.problems:
        for name in problem.fixes:
            if name not in fixes:
                yield RuleIssue(path, problem.id, f"names a fix that does not exist: {name}")
        for name in problem.silences:
            if name not in problems:
                yield RuleIssue(path, problem.id, f"silences a problem that does not exist: {name}")
        for cite in problem.cites:
            if cite.source not in sources:
                yield RuleIssue(path, problem.id, f"cites a source that does not exist: {cite.source}")
            elif cite.claim is not None and cite.claim not in sources[cite.source]:
                yield RuleIssue(path, problem.id, f"cites a claim that {cite.source} does not have: {cite.claim}")
    sheets = {sheet.id for _, sheet in rules.sheets}
    for path, form in rules.forms:
        for field in form.fields:
            if field.sheet is not None and field.sheet not in sheets:
                yield RuleIssue(path, form.id, f"names a sheet that does not exist: {field.sheet}")
    for path, fix in rules.fixes:
        for name in (*fix.cites, *(name for one in fix.not_this for name in one.cites)):
            if name not in sources:
                yield RuleIssue(path, fix.id, f"cites a source that does not exist: {name}")
        for name in (name for one in fix.not_this for name in one.problems):
            if name not in problems:
                yield RuleIssue(path, fix.id, f"speaks of a problem that does not exist: {name}")
