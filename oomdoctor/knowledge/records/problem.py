"""The shape of rules/problems, what a failure means, and of rules/causes.yaml, why runs fail."""

import math
from typing import Any, Literal

from msgspec import Struct

from oomdoctor.case.event import Certainty
from oomdoctor.knowledge.records.base import Id, Plain, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition
from oomdoctor.knowledge.records.odds import PROBLEM_LOG_ODDS, WeightName
from oomdoctor.knowledge.records.signature import CertaintyName


class CiteRecord(Record, frozen=True, kw_only=True):
    """A claim of a source, by number, or what the source says in a word."""

    source: str
    claim: str | None = None
    says: TextRecord | None = None


class CaseExample(Record, frozen=True, kw_only=True):
    """A log and what was observed beside it, an environment, or a memory snapshot, that a problem must explain, or leave alone."""

    name: str
    log: str = ""
    observed: dict[str, dict[str, Plain]] = {}
    """What was seen beside it (rules/observations), each with its fields, and its `rank` where that counts."""
    environment: dict[str, Any] | None = None
    """As in the JSON of `oomdoctor env`; the problem is then asked about it instead of about a log."""
    snapshot: dict[str, Any] | None = None
    """Facts of a memory snapshot, without `snapshot.`; the problem is then asked about them alone."""
    expect: Literal["match", "unknown", "none"] = "match"


class ProblemRecord(Record, frozen=True, kw_only=True):
    """rules/problems/<area>/<problem>.yaml: what it means."""

    id: Id
    cause: str | None = None
    severity: Literal["error", "warning", "note"] = "error"
    weight: WeightName | None = None
    """For an explanation of a failure: how probable its cause is before other evidence is weighed (records/odds.py)."""
    confidence: CertaintyName | None = None
    """For a statement, which competes with no explanation: how sure it is."""
    rank: int = 50
    """Where a statement stands among the others: the lower first."""
    title: TextRecord
    called: list[str] = []
    """What people look for when they mean it, in any language (`oomdoctor explain`)."""
    when: Condition
    why: TextRecord
    fixes: list[str] = []
    silences: list[str] = []
    """More general problems, to which this one leaves nothing to say. What decides between causes is evidence, not this list."""
    cites: list[CiteRecord] = []
    examples: list[CaseExample] = []
    near_misses: list[CaseExample] = []

    @property
    def alone(self) -> Certainty:
        """Return how sure it is where nothing else explains the failure."""
        if self.weight is None:
            return Certainty(self.confidence or "possible")
        return Certainty.of(1 / (1 + math.exp(-PROBLEM_LOG_ODDS[self.weight])))


class ProblemCore(Struct, frozen=True):
    """What deciding needs of a problem."""

    id: str
    when: Condition
    cause: str | None
    weight: float | None
    """The logarithm of its odds."""
    confidence: CertaintyName | None
    rank: int
    silences: list[str]


class SettledBy(Record, frozen=True, kw_only=True):
    """The evidence that tells whether a cause is the right one."""

    says: TextRecord
    """What to look at, and what it shows."""
    command: str | None = None
    """What gets it; COMMAND is that of the run."""
    unless: list[str] = []
    """Facts of which one is enough: nobody is asked for what a log holds."""
    when: Condition | None = None
    """The machines on which it can be looked at; None: wherever no entry before it can."""


class CauseRecord(Record, frozen=True, kw_only=True):
    """A cause; several problems can be forms of one."""

    id: Id
    says: TextRecord
    """What is wrong, in one sentence."""
    in_the_way: bool = False
    """Whether it is something beside what the run asks for: who else holds the card, a limit that is set, memory that is held for nothing.
    It is mended before the request is made smaller."""
    settled_by: list[SettledBy] = []
    """What tells whether it is this cause, where a log cannot; the first that is not known already counts."""


class CauseFile(Record, frozen=True, kw_only=True):
    """The file rules/causes.yaml."""

    settling: list[SettledBy] = []
    """What settles several of them, written once."""
    causes: list[CauseRecord]


CAUSES = RecordKind("causes", CauseRecord)
