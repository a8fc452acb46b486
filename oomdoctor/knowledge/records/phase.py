"""The shape of rules/phases.yaml: when a run can have died of which no more than a message is left, and what to do then."""

from typing import Annotated

from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Plain, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition


class LikelierRecord(Record, frozen=True, kw_only=True):
    """What makes a time more probable than the others."""

    when: Condition
    source: str
    """What says so."""


class PhaseRecord(Record, frozen=True, kw_only=True):
    """A time in the life of a run."""

    id: Id
    says: TextRecord
    """When it was, as a condition that a step follows."""
    when: Condition
    """It comes into question in runs of which this is true."""
    of: list[str] = []
    """Causes that are no other reading than this one: a server's own share is in its own way."""
    likelier: LikelierRecord | None = None
    """Where it holds the time stands before the others."""
    assumes: dict[str, Plain] = {}
    """The facts that would be known if it was then; fixes are chosen by them."""
    fixes: Annotated[list[str], Meta(min_length=1)]
    """What to do then, each where the one before is not enough."""
    shown_by: TextRecord
    """What stands in the traceback if it was then."""
    source: str


class PhaseFile(Record, frozen=True, kw_only=True):
    """The file rules/phases.yaml; the most frequent stand first."""

    phases: list[PhaseRecord]


FAILURE_PHASES = RecordKind("phases", PhaseRecord)
