"""The shape of rules/sources.yaml: the documents that rules cite."""

from typing import Literal

from oomdoctor.knowledge.records.base import Id, Record, TextRecord


class Claim(Record, frozen=True, kw_only=True):
    """One claim of a source, checked."""

    id: str
    says: TextRecord
    verdict: Literal["right", "partly", "wrong", "unverified"]
    correction: TextRecord | None = None


class SourceRecord(Record, frozen=True, kw_only=True):
    """A document that is cited."""

    id: Id
    title: str
    url: str | None = None
    claims: list[Claim] = []


class SourceFile(Record, frozen=True, kw_only=True):
    """The file rules/sources.yaml."""

    sources: list[SourceRecord]
