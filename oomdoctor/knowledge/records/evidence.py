"""The shape of rules/evidence.yaml, what speaks for causes and against them, and of rules/computations.yaml, what frames show."""

from typing import Annotated

from msgspec import Meta, Struct

from oomdoctor.knowledge.records.base import Id, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition
from oomdoctor.knowledge.records.problem import CaseExample


class EvidenceRecord(Record, frozen=True, kw_only=True):
    """Something seen in a run that makes some causes more probable and others less."""

    id: Id
    says: TextRecord
    """What was seen, in a few words that can stand after "because"."""
    when: Condition
    weights: Annotated[dict[str, float], Meta(min_length=1)]
    """Cause, or problem -> what is added to its weight: the natural logarithm of how many times more often this is seen with it."""
    source: str
    """Why it speaks so: a fact of a program, or what reports showed."""
    examples: Annotated[list[CaseExample], Meta(min_length=1)]
    near_misses: Annotated[list[CaseExample], Meta(min_length=1)]


class EvidenceFile(Record, frozen=True, kw_only=True):
    """The file rules/evidence.yaml."""

    evidence: list[EvidenceRecord]


class EvidenceCore(Struct, frozen=True):
    """What weighing needs of a piece of evidence."""

    id: str
    when: Condition
    weights: dict[str, float]


class ComputationRecord(Record, frozen=True, kw_only=True):
    """Something that programs compute, and how frames and source lines show it."""

    id: Id
    says: TextRecord
    """A noun: what is computed."""
    pattern: str
    """Within one line."""
    words: list[str] = []
    """Pieces of which one stands in every line that the pattern matches, where the pattern itself does not tell them."""
    source: str
    examples: Annotated[list[str], Meta(min_length=1)]
    near_misses: Annotated[list[str], Meta(min_length=1)]


class ComputationFile(Record, frozen=True, kw_only=True):
    """The file rules/computations.yaml."""

    computations: list[ComputationRecord]


class ComputationCore(Struct, frozen=True):
    """What finding a computation needs."""

    id: str
    pattern: str
    needs: list[str]
    """Pieces of which one stands in every line that the pattern matches; empty where none is known."""


EVIDENCE = RecordKind("evidence", EvidenceRecord)
