"""The shape of a rule file, key by key. Loading is strict: an unknown key is an error with its place.

Only loading and lint import this module (msgspec); reading a compiled pack does not.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Id = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$", max_length=80)]
KindName = Literal["device-oom", "masked-device-oom", "host-oom", "shm-oom", "kernel-resource", "look-alike", "consequence", "context"]
CertaintyName = Literal["certain", "likely", "possible"]
FamilyName = Literal["torch-allocator", "nvml-assert", "kernel-oom", "nvidia-smi", "memory-summary", "elastic-box", "array-size"]
UnitName = Literal["KiB", "MiB", "GiB", "TiB"]


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all records: immutable, and no key that nobody reads."""


class Words(Record, frozen=True, kw_only=True):
    """One text in both languages."""

    en: Annotated[str, Meta(min_length=1)]
    zh: Annotated[str, Meta(min_length=1)]


class Example(Record, frozen=True, kw_only=True):
    """A text that a signature must recognise, and the fields that it must find."""

    text: str
    fields: dict[str, Any] = {}


class NearMiss(Record, frozen=True, kw_only=True):
    """A text that must leave the signature quiet, and why."""

    text: str
    why: str


class SignatureRecord(Record, frozen=True, kw_only=True):
    """One message that a program prints."""

    id: Id
    kind: KindName
    certainty: CertaintyName | None = None
    outcome: Literal["failure", "pressure"] = "failure"
    literals: Annotated[list[str], Meta(min_length=1)]
    pattern: str | None = None
    family: FamilyName | None = None
    set: dict[str, int | str] = {}
    unit: dict[str, UnitName] = {}
    since: str | None = None
    until: str | None = None
    source: str
    note: str | None = None
    examples: list[Example] = []
    near_misses: list[NearMiss] = []


class SignatureFile(Record, frozen=True, kw_only=True):
    """rules/signatures/<program>.yaml"""

    program: str
    signatures: list[SignatureRecord]


class CiteRecord(Record, frozen=True, kw_only=True):
    """A claim of a source, by number, or what the source says in a word."""

    source: str
    claim: str | None = None
    says: Words | None = None


class CaseExample(Record, frozen=True, kw_only=True):
    """A log that a problem must explain, or leave alone."""

    name: str
    log: str
    expect: Literal["match", "unknown", "none"] = "match"


class ProblemRecord(Record, frozen=True, kw_only=True):
    """rules/problems/<area>/<problem>.yaml: what it means."""

    id: Id
    cause: str | None = None
    severity: Literal["error", "warning", "note"] = "error"
    confidence: CertaintyName
    rank: int = 50
    """Among findings of equal confidence the lower rank comes first: specific problems low, general ones high."""
    title: Words
    when: dict[str, Any]
    why: Words
    fixes: list[str] = []
    silences: list[str] = []
    cites: list[CiteRecord] = []
    examples: Annotated[list[CaseExample], Meta(min_length=1)]
    near_misses: Annotated[list[CaseExample], Meta(min_length=1)]


class SettingRecord(Record, frozen=True, kw_only=True):
    """One key of one framework."""

    framework: str
    key: str
    to: str
    since: str | None = None
    until: str | None = None
    source: str


class FixRecord(Record, frozen=True, kw_only=True):
    """rules/fixes/<measure>.yaml: what to do."""

    id: Id
    title: Words
    how: Words
    settings: list[SettingRecord] = []
    command: str | None = None
    frees: str | None = None
    """The term of the memory model that it lowers."""
    costs: Words | None = None
    safety: Literal["safe", "review"] = "review"
    cites: list[str] = []


class Claim(Record, frozen=True, kw_only=True):
    """One claim of a source, checked."""

    id: str
    says: Words
    verdict: Literal["right", "partly", "wrong", "unverified"]
    correction: Words | None = None


class SourceRecord(Record, frozen=True, kw_only=True):
    """A document that is cited."""

    id: Id
    title: str
    url: str | None = None
    claims: list[Claim] = []


class SourceFile(Record, frozen=True, kw_only=True):
    """rules/sources.yaml"""

    sources: list[SourceRecord]
