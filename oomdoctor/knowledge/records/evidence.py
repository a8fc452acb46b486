"""The shape of rules/evidence.yaml, rules/computations.yaml and rules/holdings.yaml: what speaks for causes, what frames show."""

from typing import Annotated

from msgspec import Meta, Struct

from oomdoctor.knowledge.records.base import Id, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition
from oomdoctor.knowledge.records.odds import EvidenceName
from oomdoctor.knowledge.records.problem import CaseExample

WrittenFrame = Annotated[str, Meta(pattern=r"^.+:[0-9]+:[^:]+$")]
"""A frame as file:line:function."""


class EvidenceRecord(Record, frozen=True, kw_only=True):
    """Something seen in a run that makes some causes more probable and others less."""

    id: Id
    says: TextRecord
    """What was seen, in a few words that can stand after "because"."""
    when: Condition
    weights: dict[str, EvidenceName] = {}
    """Cause, or problem -> how much it speaks for it or against it (records/odds.py)."""
    concludes: TextRecord | None = None
    """A sentence with the figures that it follows from, for the screen; facts stand in it as in the texts of problems."""
    unless_known: bool = False
    """Whether that sentence is left out where the request that failed is known, which says more."""
    source: str
    """Why it speaks so: a fact of a program, or what reports showed."""
    examples: list[CaseExample] = []
    near_misses: list[CaseExample] = []


class EvidenceFile(Record, frozen=True, kw_only=True):
    """The file rules/evidence.yaml."""

    evidence: list[EvidenceRecord]


class EvidenceCore(Struct, frozen=True):
    """What weighing needs of a piece of evidence."""

    id: str
    when: Condition
    weights: dict[str, float]
    """What is added to the logarithm of the odds of a cause or a problem."""


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
    examples: list[str] = []
    near_misses: list[str] = []


class ComputationFile(Record, frozen=True, kw_only=True):
    """The file rules/computations.yaml."""

    computations: list[ComputationRecord]


class ComputationCore(Struct, frozen=True):
    """What finding a computation needs."""

    id: str
    pattern: str
    needs: list[str]
    """Pieces of which one stands in every line that the pattern matches; empty where none is known."""


class HoldingRecord(Record, frozen=True, kw_only=True):
    """What device memory is held for, and which frames ask for such memory."""

    id: Id
    says: TextRecord
    """A noun, as people call it."""
    computations: list[str] = []
    """What is computed (rules/computations.yaml) where such memory is asked for."""
    functions: list[str] = []
    """Functions of which one stands in the frames, where the computation does not tell."""
    terms: list[str] = []
    """The terms of the memory model, and of what fixes free, that are this memory."""
    counted_as: Id | None = None
    """The entry that it is compared with the memory model together with."""
    less: TextRecord | None = None
    """What it means where much less is there than the model expects."""
    more: TextRecord | None = None
    source: str
    examples: list[list[WrittenFrame]] = []
    """Innermost first."""
    near_misses: list[list[WrittenFrame]] = []


class HoldingFile(Record, frozen=True, kw_only=True):
    """The file rules/holdings.yaml. Of functions the first entry counts that has one of those in the frames."""

    holdings: list[HoldingRecord]


HOLDINGS = RecordKind("holdings", HoldingRecord)
EVIDENCE = RecordKind("evidence", EvidenceRecord)
