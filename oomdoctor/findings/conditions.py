"""The conditions of rules: a small closed language, with three answers.

True, False and None: unknown. A rule whose condition is unknown can still report, naming what would settle it.
"""

from __future__ import annotations

import operator as compare
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from oomdoctor.case.event import STATEMENTS, Event, Kind, Value
from oomdoctor.knowledge.records.condition import (
    AllOf,
    AnyOf,
    Compared,
    Condition,
    EventCondition,
    FactCondition,
    Operator,
    TextCondition,
    asked_of_events,
)
from oomdoctor.units import parse_size
from oomdoctor.versions import parse_version

Fact = Value | bool | float | None


class ConditionResult(Struct, frozen=True):
    """The result of a condition, the events it relies on, and the facts that were missing."""

    truth: bool | None
    events: tuple[Event, ...] = ()
    missing: tuple[str, ...] = ()


class KnownFacts(Struct, frozen=True):
    """What conditions are evaluated against: named facts and the events of the run."""

    facts: Mapping[str, Fact]
    events: Sequence[Event]
    programs: Mapping[str, str] = field(default_factory=dict)
    """Signature id -> program."""
    roots: tuple[Event, ...] = ()
    """The root events of the incidents: what a rule over facts alone relies on."""
    topics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Signature id -> what it says beyond its kind, outcome and fields."""
    always_open: bool = False
    """Whether a condition on an unknown fact stays open, whatever the rule says."""


def evaluate(when: Condition, known: KnownFacts) -> ConditionResult:
    """Return the result of a condition."""
    if isinstance(when, FactCondition):
        return _fact(when, known)
    if isinstance(when, EventCondition):
        return _event(when, known)
    if isinstance(when, AllOf):
        return _all(when.parts, known)
    if isinstance(when, AnyOf):
        return _any([evaluate(part, known) for part in when.parts])
    if isinstance(when, TextCondition):
        return _text(when, known)
    result = evaluate(when.part, known)
    return ConditionResult(None if result.truth is None else not result.truth, (), result.missing)


def _all(parts: Sequence[Condition], known: KnownFacts) -> ConditionResult:
    results: list[ConditionResult] = []
    # Texts are searched last: most rules are ruled out by a fact.
    for part in sorted(parts, key=lambda part: isinstance(part, (TextCondition, AnyOf))):
        result = evaluate(part, known)
        if result.truth is False:
            return ConditionResult(False)
        results.append(result)
    events, missing = _joined(results)
    return ConditionResult(None if any(result.truth is None for result in results) else True, events, missing)


def _any(results: list[ConditionResult]) -> ConditionResult:
    true = [result for result in results if result.truth]
    if true:
        return ConditionResult(True, _joined(true)[0])
    unknown = [result for result in results if result.truth is None]
    return ConditionResult(None, *_joined(unknown)) if unknown else ConditionResult(False)


def _joined(results: list[ConditionResult]) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    events = {id(event): event for result in results for event in result.events}
    return tuple(events.values()), tuple(dict.fromkeys(name for result in results for name in result.missing))


def _event(when: EventCondition, known: KnownFacts) -> ConditionResult:
    choices = {word: (names,) if isinstance(names, str) else names for word, names in asked_of_events(when).items()}
    events = [
        event
        for event in known.events
        if all(any(name in names for name in _said(word, event, known)) for word, names in choices.items())
        and all(_holds(test.operator, event.fields.get(test.field), test.value) for test in when.where)
    ]
    return ConditionResult(bool(events), tuple(events[:3]))


def _said(word: str, event: Event, known: KnownFacts) -> Sequence[str | None]:
    """Return what a condition's keyword can query about an event."""
    if word == "event":
        return (event.signature,)
    if word == "tells":
        return told(event, known.topics.get(event.signature, ()))
    if word == "program":
        return (known.programs.get(event.signature),)
    return (event.resource if word == "resource" else event.kind.value if word == "kind" else event.outcome.value,)


def told(event: Event, topics: Sequence[str]) -> Sequence[str]:
    """Return what an event says: the topics of its signature and, if none of them covers it, what it states."""
    return topics if any(topic in STATEMENTS for topic in topics) else (*topics, event.statement)


def _text(when: TextCondition, known: KnownFacts) -> ConditionResult:
    events = [event for event in known.events if event.kind is not Kind.CONTEXT]
    if when.needs is not None:
        events = [event for event in events if any(piece in event.text for piece in when.needs)]
    pattern = re.compile(when.pattern) if events else None
    events = [event for event in events if pattern is not None and pattern.search(event.text)]
    return ConditionResult(bool(events), tuple(events[:3]))


def _fact(when: FactCondition, known: KnownFacts) -> ConditionResult:
    value = known.facts.get(when.fact)
    if when.operator == "known":
        return ConditionResult((value is not None) is bool(when.value))
    if value is None:
        return ConditionResult(None, (), (when.fact,)) if when.open or known.always_open else ConditionResult(False)
    return ConditionResult(_holds(when.operator, value, when.value))


def _holds(operator: Operator, value: Fact, expected: Compared) -> bool:
    if operator == "known":
        return (value is not None) is bool(expected)
    if value is None:
        return False
    if operator in ("is", "not"):
        return (_plain(value) == _plain(expected)) is (operator == "is")
    if operator == "in":
        return isinstance(expected, tuple) and _plain(value) in [_plain(choice) for choice in expected]
    if operator == "contains":
        return str(expected).lower() in str(value).lower()
    if isinstance(expected, str) and _VERSION.fullmatch(expected):
        version, bound = parse_version(str(value)), parse_version(expected)
        return version is not None and bound is not None and _COMPARE[operator](version, bound)
    size, limit = _size(value), _size(expected)
    return size is not None and limit is not None and _COMPARE[operator](size, limit)


_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){2,4}")
"""A bound that is a version: at least three numbers, since `2.1` is a number."""
_DECIMAL = re.compile(r"\d+\.\d+")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"lt": compare.lt, "le": compare.le, "gt": compare.gt, "ge": compare.ge}


def _plain(value: object) -> str:
    return str(value).strip().lower()


def _size(value: object) -> float | None:
    """Return a number or a printed size as a number; None for anything else."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    text = str(value).strip()
    size = None if _DECIMAL.fullmatch(text) else parse_size(text)
    if size is not None:
        return float(size)
    try:
        return float(text)
    except ValueError:
        return None
