"""The shape of rules/conditions.yaml: conditions that several rules share.

Only loading and lint import this module (msgspec); reading a compiled pack does not.
"""

from typing import Any

from oomdoctor.knowledge.records.base import Id, Record


class ConditionRecord(Record, frozen=True, kw_only=True):
    """A condition that rules use by its name: `{condition: device-memory-failed}`."""

    id: Id
    says: str
    """What holds where it is true, in one sentence."""
    when: dict[str, Any]


class ConditionFile(Record, frozen=True, kw_only=True):
    """The file rules/conditions.yaml."""

    conditions: list[ConditionRecord]
