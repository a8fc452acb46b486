"""Judge what memory snapshots show, with the engine that judges runs."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.advice.fixes import with_advice
from oomdoctor.case.diagnosis import Finding
from oomdoctor.findings.conditions import Fact, KnownFacts
from oomdoctor.findings.engine import findings
from oomdoctor.knowledge.pack import Pack


def snapshot_findings(facts: Mapping[str, Fact], pack: Pack) -> tuple[Finding, ...]:
    """Judge facts of a snapshot (`snapshot.why`) and return the findings with advice. Unknown facts produce no finding."""
    known = KnownFacts(facts, ())
    return with_advice([finding for finding in findings(pack, known) if not finding.unknowns], pack, known)
