"""The shape of rules/checks: combinations of settings that do not do what they seem to do."""

from typing import Annotated, Literal

from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Plain, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition


class CheckExample(Record, frozen=True, kw_only=True):
    """Config files, by name, of which one check must speak, or none."""

    name: str
    files: dict[str, str]
    known: dict[str, Plain | None] = {}
    """Facts of the log, `log.transformers_version`."""


class CheckRecord(Record, frozen=True, kw_only=True):
    """A combination of settings that does not do what it seems to do."""

    id: Id
    severity: Literal["error", "warning", "note"]
    at: Annotated[list[str], Meta(min_length=1)]
    """The facts that name its place: `training.NAME` or `given.FRAMEWORK.KEY`; the first one that is there counts."""
    when: Condition
    what: TextRecord
    why: TextRecord
    instead: str | None = None
    mended_by: Id | None = None
    """The fix that has the keys for it, where each framework has its own."""
    sets: dict[str, Plain | None] = {}
    """What that fix is to set, by the names that all frameworks share."""
    source: str
    """Where it stands that it is so."""
    cites: list[str] = []
    examples: list[CheckExample] = []
    near_misses: list[CheckExample] = []


class CheckFile(Record, frozen=True, kw_only=True):
    """A file rules/checks/<subject>.yaml."""

    checks: list[CheckRecord]


CHECKS = RecordKind("checks", CheckRecord)
