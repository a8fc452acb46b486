"""All rule files of one folder, as records."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from oomdoctor.knowledge.conditions import WrittenCondition
from oomdoctor.knowledge.records.bug import BugFile
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.knowledge.records.check import CheckRecord
from oomdoctor.knowledge.records.evidence import ComputationRecord, EvidenceRecord, HoldingRecord
from oomdoctor.knowledge.records.fix import FixRecord
from oomdoctor.knowledge.records.form import FormRecord, SheetRecord
from oomdoctor.knowledge.records.framework import FrameworkRecord
from oomdoctor.knowledge.records.layout import ExportRecord, LayoutRecord
from oomdoctor.knowledge.records.lexicon import ConceptRecord, RefusalForm
from oomdoctor.knowledge.records.phase import PhaseRecord
from oomdoctor.knowledge.records.problem import CauseRecord, ProblemRecord
from oomdoctor.knowledge.records.request import OperationRecord, QuantityRecord, RequestRecord
from oomdoctor.knowledge.records.server import ServerRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.records.source import SourceRecord
from oomdoctor.knowledge.records.template import TemplateRecord


class LoadedSignature(Struct, frozen=True):
    """A signature and where it comes from."""

    program: str
    path: str
    record: SignatureRecord


class RuleSet(Struct, frozen=True):
    """All rule files of one folder, as records; most with the path of their file."""

    signatures: tuple[LoadedSignature, ...]
    problems: tuple[tuple[str, ProblemRecord], ...]
    fixes: tuple[tuple[str, FixRecord], ...]
    sources: tuple[SourceRecord, ...]
    frameworks: tuple[tuple[str, FrameworkRecord], ...] = ()
    servers: tuple[tuple[str, ServerRecord], ...] = ()
    checks: tuple[tuple[str, CheckRecord], ...] = ()
    forms: tuple[tuple[str, FormRecord], ...] = ()
    sheets: tuple[tuple[str, SheetRecord], ...] = ()
    templates: tuple[tuple[str, TemplateRecord], ...] = ()
    changes: tuple[tuple[str, ChangeRecord], ...] = ()
    bugs: tuple[tuple[str, BugFile], ...] = ()
    """One file a program."""
    requests: tuple[tuple[str, RequestRecord], ...] = ()
    operations: tuple[OperationRecord, ...] = ()
    quantities: tuple[QuantityRecord, ...] = ()
    causes: tuple[CauseRecord, ...] = ()
    computations: tuple[ComputationRecord, ...] = ()
    holdings: tuple[HoldingRecord, ...] = ()
    evidence: tuple[EvidenceRecord, ...] = ()
    phases: tuple[PhaseRecord, ...] = ()
    layouts: tuple[LayoutRecord, ...] = ()
    exports: tuple[ExportRecord, ...] = ()
    topics: Mapping[str, str] = {}
    """What signatures can tell, each with what it means."""
    concepts: tuple[tuple[str, ConceptRecord], ...] = ()
    """What words mean; one concept may have words in several files."""
    grammar: tuple[RefusalForm, ...] = ()
    """How words follow each other where memory was refused; what they name are concepts."""
    conditions: Mapping[str, WrittenCondition] = {}
    """The conditions that have names, plain."""
    root: str = ""
    """The folder."""
