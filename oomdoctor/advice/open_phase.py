"""What to do depending on when the run died, if only a message is left and nothing shows the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.advice.fixes import advice
from oomdoctor.case.diagnosis import FailurePhase, Finding, Fix, OpenPhase
from oomdoctor.case.event import Certainty
from oomdoctor.case.settings import RunConfig
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.phase import FAILURE_PHASES, PhaseRecord
from oomdoctor.knowledge.records.problem import CAUSES, ProblemRecord

_READINGS = 2
"""The findings that must leave the time open."""
_STEPS = 2
"""What to do first, and if that is not enough."""


def open_phase(findings: Sequence[Finding], pack: Pack, known: KnownFacts, training: RunConfig | None = None) -> OpenPhase | None:
    """Return when the run may have died; None if something shows it, or if something else is blocking the run."""
    problem = pack.problem(findings[0].id) if findings else None
    if problem is None or findings[0].confidence is not Certainty.POSSIBLE:
        return None
    possible = [record for record in pack.records(FAILURE_PHASES) if evaluate(record.when, known).truth]
    own = {cause for record in possible for cause in record.of}
    if any(_in_the_way(finding, pack) for finding in findings[:_READINGS] if finding.cause not in own):
        return None
    possible.sort(key=lambda record: not (record.likelier is not None and evaluate(record.likelier.when, known).truth))
    phases = [
        FailurePhase(id=record.id, says=record.says, fixes=fixes)
        for record in possible
        if (fixes := tuple(_fixes(record, problem, pack, known, training)))
    ]
    if len(phases) < _READINGS:
        return None
    shown = [record.shown_by for record in possible]
    return OpenPhase(phases=tuple(phases), settled_by=Text("; ".join(text.en for text in shown), "；".join(text.zh for text in shown)))


def _fixes(record: PhaseRecord, problem: ProblemRecord, pack: Pack, known: KnownFacts, training: RunConfig | None) -> Iterator[Fix]:
    """Yield what can be typed, in the order of the phase."""
    assumed = replace(known, facts={**known.facts, **record.assumes})
    advised = {fix.id: fix for fix in advice(pack, problem, assumed, training, record.fixes).fixes}
    chosen = [advised[name] for name in record.fixes if name in advised]
    yield from [fix for fix in chosen if fix.typed or fix.settings or fix.command][:_STEPS]


def _in_the_way(finding: Finding, pack: Pack) -> bool:
    cause = None if finding.cause is None else pack.record(CAUSES, finding.cause)
    return cause is not None and cause.in_the_way
