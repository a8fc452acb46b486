"""The conditions of rules as records: joined conditions, and what is asked of events, texts and facts.

In the files a condition is a mapping of a few words (knowledge/conditions.py); records hold the types below, and
`written_condition` gives the words back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union

from msgspec import Struct

from oomdoctor.knowledge.records.base import Id, Plain, Record

Operator = Literal["is", "not", "lt", "le", "gt", "ge", "in", "contains", "known"]
Compared = Union[str, int, float, bool, tuple[Plain, ...], None]
Names = Union[str, tuple[str, ...], None]


class _Condition(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="asks"):
    """Base of all conditions."""


class AllOf(_Condition, frozen=True, tag="all"):
    """Every part must hold."""

    parts: tuple[Condition, ...]


class AnyOf(_Condition, frozen=True, tag="any"):
    """One part must hold."""

    parts: tuple[Condition, ...]


class NotThat(_Condition, frozen=True, tag="not"):
    """The part must not hold."""

    part: Condition


class TextCondition(_Condition, frozen=True, tag="text"):
    """A pattern must stand in the text of an event."""

    pattern: str
    needs: tuple[str, ...] | None = None
    """Pieces of which one stands in every text that the pattern matches, so that most patterns are never compiled."""


class FactCondition(_Condition, frozen=True, tag="fact"):
    """A named fact must compare so with a value."""

    fact: str
    operator: Operator
    value: Compared
    open: bool = False
    """Whether the answer is open where the fact is unknown; it is no otherwise."""


class FieldTest(Struct, frozen=True):
    """A field of an event must compare so with a value."""

    field: str
    operator: Operator
    value: Compared


class EventCondition(_Condition, frozen=True, tag="event"):
    """There must be an event that tells this, of such memory, by such a program, and whose fields pass the tests."""

    event: Names = None
    """Signatures: the last resort, where only one message says it."""
    tells: Names = None
    """Topics of rules/topics.yaml, of which it must tell one."""
    resource: Names = None
    program: Names = None
    kind: Names = None
    outcome: Names = None
    where: tuple[FieldTest, ...] = ()


EVENT_WORDS = tuple(word for word in EventCondition.__struct_fields__ if word != "where")
Condition = Union[AllOf, AnyOf, NotThat, EventCondition, TextCondition, FactCondition]


def tagged_condition(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a condition as a rule file writes it in the form that records are decoded from."""
    for word in ("all", "any"):
        if word in written:
            return {"asks": word, "parts": [tagged_condition(part) for part in written[word]]}
    if "fact" in written:
        operator = next(word for word in written if word not in ("fact", "open"))
        compared = {"asks": "fact", "fact": written["fact"], "operator": operator, "value": written[operator]}
        return {**compared, "open": True} if "open" in written else compared
    if "not" in written:
        return {"asks": "not", "part": tagged_condition(written["not"])}
    if "text" in written:
        return {"asks": "text", "pattern": written["text"]}
    tests = [
        {"field": field, "operator": operator, "value": value}
        for field, comparisons in written.get("where", {}).items()
        for operator, value in comparisons.items()
    ]
    return {"asks": "event", **written, "where": tests}


def written_condition(condition: Condition) -> dict[str, Any]:
    """Return a condition in the words of a rule file."""
    if isinstance(condition, AllOf):
        return {"all": [written_condition(part) for part in condition.parts]}
    if isinstance(condition, AnyOf):
        return {"any": [written_condition(part) for part in condition.parts]}
    if isinstance(condition, NotThat):
        return {"not": written_condition(condition.part)}
    if isinstance(condition, TextCondition):
        return {"text": condition.pattern}
    if isinstance(condition, FactCondition):
        return {"fact": condition.fact, condition.operator: condition.value, **({"open": True} if condition.open else {})}
    names = asked_of_events(condition)
    where: dict[str, dict[str, Compared]] = {}
    for test in condition.where:
        where.setdefault(test.field, {})[test.operator] = test.value
    return {**names, **({"where": where} if where else {})}


def asked_of_events(condition: EventCondition) -> dict[str, Union[str, tuple[str, ...]]]:
    """Return what a condition asks of an event beside its fields, by the words of a rule file."""
    return {word: value for word in EVENT_WORDS if (value := getattr(condition, word)) is not None}


class ConditionRecord(Record, frozen=True, kw_only=True):
    """A condition that rules use by its name: `{condition: device-memory-failed}`."""

    id: Id
    says: str
    """What holds where it is true, in one sentence."""
    when: dict[str, Any]


class ConditionFile(Record, frozen=True, kw_only=True):
    """The file rules/conditions.yaml."""

    conditions: list[ConditionRecord]
