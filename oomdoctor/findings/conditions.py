"""The conditions of rules: a small closed language, with three answers.

True, False and None: unknown. A rule whose condition is unknown can still speak, and names what would settle it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from oomdoctor.case.event import Event, Kind, Value
from oomdoctor.knowledge.conditions import OPERATORS
from oomdoctor.units import parse_size

Fact = Value | bool | float | None


class ConditionResult(Struct, frozen=True):
    """What a condition came to, the events that it stands on, and the facts that were missing."""

    truth: bool | None
    events: tuple[Event, ...] = ()
    missing: tuple[str, ...] = ()


class KnownFacts(Struct, frozen=True):
    """What conditions are asked about: named facts and the events of the run."""

    facts: Mapping[str, Fact]
    events: Sequence[Event]
    programs: Mapping[str, str] = field(default_factory=dict)
    """Signature id -> program."""
    roots: tuple[Event, ...] = ()
    """The root events of the incidents: what a rule over facts alone stands on."""


def evaluate(when: Mapping[str, Any], known: KnownFacts) -> ConditionResult:
    """The answer of a condition."""
    if "all" in when:
        return _all(when["all"], known)
    if "any" in when:
        return _any([evaluate(one, known) for one in when["any"]])
    if "not" in when:
        inner = evaluate(when["not"], known)
        return ConditionResult(None if inner.truth is None else not inner.truth, (), inner.missing)
    if "text" in when:
        return _text(when["text"], when.get("needs"), known)
    if "fact" in when:
        return _fact(when, known)
    return _event(when, known)


def _all(parts: Sequence[Mapping[str, Any]], known: KnownFacts) -> ConditionResult:
    answers: list[ConditionResult] = []
    # Texts are searched last: most rules are ruled out by a fact.
    for one in sorted(parts, key=lambda part: "text" in part or "any" in part):
        answer = evaluate(one, known)
        if answer.truth is False:
            return ConditionResult(False)
        answers.append(answer)
    events, missing = _joined(answers)
    return ConditionResult(None if any(one.truth is None for one in answers) else True, events, missing)


def _any(answers: list[ConditionResult]) -> ConditionResult:
    true = [one for one in answers if one.truth]
    if true:
        return ConditionResult(True, _joined(true)[0])
    unknown = [one for one in answers if one.truth is None]
    return ConditionResult(None, *_joined(unknown)) if unknown else ConditionResult(False)


def _joined(answers: list[ConditionResult]) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    events = {id(event): event for one in answers for event in one.events}
    return tuple(events.values()), tuple(dict.fromkeys(name for one in answers for name in one.missing))


def _event(when: Mapping[str, Any], known: KnownFacts) -> ConditionResult:
    ids, programs, kinds = _listed(when.get("event")), _listed(when.get("program")), _listed(when.get("kind"))
    where: Mapping[str, Mapping[str, Any]] = when.get("where", {})
    found = [
        event
        for event in known.events
        if (not ids or event.signature in ids)
        and (not programs or known.programs.get(event.signature) in programs)
        and (not kinds or event.kind.value in kinds)
        and all(_holds(op, event.fields.get(name), value) for name, tests in where.items() for op, value in tests.items())
    ]
    return ConditionResult(bool(found), tuple(found[:3]))


def _text(pattern: str, needs: Sequence[str] | None, known: KnownFacts) -> ConditionResult:
    said = [event for event in known.events if event.kind is not Kind.CONTEXT]
    if needs is not None:
        said = [event for event in said if any(needed in event.text for needed in needs)]
    form = re.compile(pattern) if said else None
    found = [event for event in said if form is not None and form.search(event.text)]
    return ConditionResult(bool(found), tuple(found[:3]))


def _fact(when: Mapping[str, Any], known: KnownFacts) -> ConditionResult:
    name = when["fact"]
    value = known.facts.get(name)
    operator = next(word for word in OPERATORS if word in when)
    if operator == "known":
        return ConditionResult((value is not None) is bool(when["known"]))
    if value is None:
        return ConditionResult(None, (), (name,))
    return ConditionResult(_holds(operator, value, when[operator]))


def _holds(operator: str, value: Fact, wanted: Any) -> bool:
    if operator == "known":
        return (value is not None) is bool(wanted)
    if value is None:
        return False
    if operator in ("is", "not"):
        return (_plain(value) == _plain(wanted)) is (operator == "is")
    if operator == "in":
        return _plain(value) in [_plain(one) for one in wanted]
    if operator == "contains":
        return str(wanted).lower() in str(value).lower()
    left, right = _comparable(value), _comparable(wanted)
    return left is not None and right is not None and _COMPARE[operator](left, right)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda left, right: bool(left < right),
    "le": lambda left, right: bool(left <= right),
    "gt": lambda left, right: bool(left > right),
    "ge": lambda left, right: bool(left >= right),
}


def _plain(value: Any) -> str:
    return str(value).strip().lower()


def _comparable(value: Any) -> tuple[float, ...] | None:
    """A number, a size or a dotted version as something that can be ordered."""
    if isinstance(value, (bool, int, float)):
        return (float(value),)
    text = str(value).strip()
    if re.fullmatch(r"\d{1,6}(?:\.\d{1,6}){2,4}(?:[+a-z].*)?", text):
        return tuple(float(one) for one in re.findall(r"\d{1,6}", text)[:5])
    size = parse_size(text)
    if size is not None and not re.fullmatch(r"\d+\.\d+", text):
        return (float(size),)
    try:
        return (float(text),)
    except ValueError:
        return None


def _listed(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)
