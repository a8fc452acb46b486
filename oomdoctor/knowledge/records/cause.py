"""The shape of rules/causes.yaml: why runs fail, each with the name that problems give it."""

from oomdoctor.knowledge.records.base import Id, Record, TextRecord


class CauseRecord(Record, frozen=True, kw_only=True):
    """A cause; several problems can be forms of one."""

    id: Id
    says: TextRecord
    """What is wrong, in one sentence."""


class CauseFile(Record, frozen=True, kw_only=True):
    """The file rules/causes.yaml."""

    causes: list[CauseRecord]
