"""The shape of rules/problems: what a failure means."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from oomdoctor.knowledge.records.base import Id, Record, TextRecord
from oomdoctor.knowledge.records.condition import Condition
from oomdoctor.knowledge.records.signature import CertaintyName


class CiteRecord(Record, frozen=True, kw_only=True):
    """A claim of a source, by number, or what the source says in a word."""

    source: str
    claim: str | None = None
    says: TextRecord | None = None


class CaseExample(Record, frozen=True, kw_only=True):
    """A log, or an environment, that a problem must explain, or leave alone."""

    name: str
    log: str = ""
    environment: dict[str, Any] | None = None
    """As in the JSON of `oomdoctor env`; the problem is then asked about it instead of about a log."""
    expect: Literal["match", "unknown", "none"] = "match"


class ProblemRecord(Record, frozen=True, kw_only=True):
    """rules/problems/<area>/<problem>.yaml: what it means."""

    id: Id
    cause: str | None = None
    severity: Literal["error", "warning", "note"] = "error"
    confidence: CertaintyName
    rank: int = 50
    """Among findings of equal confidence the lower rank comes first: specific problems low, general ones high."""
    title: TextRecord
    called: list[str] = []
    """What people look for when they mean it, in any language (`oomdoctor explain`)."""
    when: Condition
    why: TextRecord
    fixes: list[str] = []
    silences: list[str] = []
    """Problems, or groups of them, that this one leaves nothing to say."""
    group: str | None = None
    """A name for problems that are silenced together: the readings of figures that any better explanation replaces."""
    cites: list[CiteRecord] = []
    examples: Annotated[list[CaseExample], Meta(min_length=1)]
    near_misses: Annotated[list[CaseExample], Meta(min_length=1)]


class ProblemCore(Struct, frozen=True):
    """What deciding needs of a problem."""

    id: str
    when: Condition
    confidence: CertaintyName
    rank: int
    silences: list[str]
