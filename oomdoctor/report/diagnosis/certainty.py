"""One scale of certainty for a whole report: the headline never says more or less than the finding below it."""

from __future__ import annotations

from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.case.event import Certainty, Event, Kind

_SCALE = (Certainty.POSSIBLE, Certainty.LIKELY, Certainty.CERTAIN)
_SIGKILL = "SIGKILL"
_GENERIC = "look-alike"
"""The finding that only says that something else failed."""


def verdict_certainty(diagnosis: Diagnosis) -> Certainty:
    """Return how sure the headline is. Where it and the first finding answer the same question, it is no surer than that."""
    verdict = diagnosis.case.verdict
    sure = Certainty.POSSIBLE if verdict.memory_failure == "possible" else verdict.certainty
    return _least(sure, diagnosis.findings[0].confidence) if diagnosis.findings and _is_same_question(diagnosis) else sure


def finding_certainty(diagnosis: Diagnosis, finding: Finding) -> Certainty:
    """Return how sure a finding is told to be: never surer than that anything failed."""
    return _least(finding.confidence, verdict_certainty(diagnosis)) if diagnosis.case.incidents else finding.confidence


def is_other_failure(diagnosis: Diagnosis) -> bool:
    """Return whether the headline tells an error that is none of memory, and what it is."""
    verdict = diagnosis.case.verdict
    return verdict.kind is Kind.LOOK_ALIKE or verdict.reason == "other-error"


def is_told_by_message(diagnosis: Diagnosis) -> bool:
    """Return whether an error that is none of memory is of no class that is known, so that its own words tell the most."""
    is_known = any(finding.id != _GENERIC for finding in diagnosis.findings[:1])
    return is_other_failure(diagnosis) and (diagnosis.case.verdict.kind is not Kind.LOOK_ALIKE or not is_known)


def is_kill(root: Event) -> bool:
    """Return whether a message states the end by a signal that memory killers send, and others too."""
    ends = (root.fields.get("signal"), root.fields.get("ended_by"))
    return _SIGKILL in ends or root.fields.get("exit_code") in (-9, 137)


def _is_same_question(diagnosis: Diagnosis) -> bool:
    """Return whether headline and finding speak of one thing: what an error is instead of memory, or who killed the process."""
    verdict = diagnosis.case.verdict
    return is_other_failure(diagnosis) or (verdict.settle == "sigkill" and is_kill(diagnosis.case.incidents[0].root))


def _least(first: Certainty, second: Certainty) -> Certainty:
    return min(first, second, key=_SCALE.index)
