"""The top of a report: what failed and how sure that is, and in a line below it where."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.case import SEVERAL_RUNS
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.case.incident import Incident
from oomdoctor.report.diagnosis.certainty import is_other_failure, is_told_by_message, verdict_certainty
from oomdoctor.report.diagnosis.headline import has_figures, summary
from oomdoctor.report.diagnosis.places import event_place, event_text, repetition_text
from oomdoctor.report.document import Block, Paragraph, Quote, Span, Style
from oomdoctor.report.safety.redact import last_part
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, lower_first
from oomdoctor.report.wording.wording import Wording

_STYLES = {"yes": Style.BAD, "possible": Style.WARN, "no": Style.GOOD}
_LEAST_TOLD = 12
"""An error of fewer letters (`Killed`) needs no line of its own beside the headline."""
_BETWEEN = " · "


def opening(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield the verdict, where it was seen first, and the message where the verdict says less than it does."""
    case = diagnosis.case
    style = _STYLES.get(case.verdict.memory_failure, Style.WARN)
    sure = wording.blank + wording.say(labels.CERTAIN) if _is_stated(diagnosis) else ""
    yield Paragraph((Span(summary(diagnosis, wording), style), Span(sure, Style.DIM)))
    if case.incidents and case.verdict.reason != SEVERAL_RUNS:
        yield from _where(diagnosis, case.incidents[0], wording)


def says_less(diagnosis: Diagnosis, incident: Incident) -> bool:
    """Return whether the headline tells less than the message: then the message is shown, else it is folded."""
    if is_told_by_message(diagnosis):
        return False
    return not has_figures(incident) and len(incident.root.text.strip()) > _LEAST_TOLD


def _is_stated(diagnosis: Diagnosis) -> bool:
    """Return whether the headline says that the log states it; what is less sure begins with that word."""
    verdict = diagnosis.case.verdict
    if verdict.memory_failure == "possible" or verdict.kind is Kind.NONE:
        return False
    return verdict_certainty(diagnosis) is Certainty.CERTAIN


def _where(diagnosis: Diagnosis, incident: Incident, wording: Wording) -> Iterator[Block]:
    """Yield the line of the message, its frame, and how often it was seen, below the message itself where that is shown."""
    root = incident.root
    parts = [_short_frame(clean_line(root.frame, 300))] if root.frame else []
    if incident.steps_passed and incident.kind.is_memory:
        parts.append(_steps(incident.steps_passed, wording))
    parts += [again] if (again := lower_first(bare(repetition_text(incident, wording)))) else []
    followed = len({event.place for event in incident.consequences})
    if is_other_failure(diagnosis) and followed:
        parts.append(wording.count(labels.LINES_FOLLOWED, followed))
    place = event_place(root, wording)
    yield Quote(where=_BETWEEN.join([place, *parts]), text=event_text(root, wording) if says_less(diagnosis, incident) else "")


def _steps(passed: int, wording: Wording) -> str:
    return bare(wording.count(labels.STEPS_PASSED, passed))


def _short_frame(frame: str) -> str:
    """Return a frame as `file.py:36 function`, without the folders of the file."""
    path, between, function = frame.rpartition(" in ")
    return f"{last_part(path)} {function}" if between else last_part(frame)
