"""What a restart policy is told of a job: one line, or JSON."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.report.triage.group_words import failure_of, restart
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.row import JobRow, Retry

_OUTCOMES = {"no": texts.NOT_MEMORY, "unread": texts.NOTHING_READ}


class FailureEvidence(Struct, frozen=True, kw_only=True):
    """The message that shows a failure, and where it stands."""

    file: str | None = None
    line: int | None = None
    offset: int | None = None
    """In bytes, where the line was not counted."""
    text: str | None = None
    """Without secrets, cut after 300 characters."""


class RestartAnswer(Struct, frozen=True, kw_only=True):
    """The verdict on one job; additions to it are allowed."""

    schema: str = "oomdoctor/verdict/v1"
    memory_failure: str
    """yes, possible, no, unread."""
    retry: Retry
    kind: str
    certainty: str | None
    phase: str | None
    signature: str | None
    evidence: FailureEvidence
    exit_codes: str
    exit_code: int


def convert(row: JobRow, scheme: str, code: int) -> RestartAnswer:
    """Return a row as what is answered."""
    return RestartAnswer(
        memory_failure=row.memory_failure,
        retry=row.retry,
        kind=row.kind,
        certainty=row.certainty,
        phase=row.phase,
        signature=row.signature,
        evidence=FailureEvidence(file=row.first_file, line=row.first_line, offset=row.first_offset, text=row.text),
        exit_codes=scheme,
        exit_code=code,
    )


def line(row: JobRow, wording: Wording) -> str:
    """Return the verdict as one line: the word for the restart, or `no`, `possible`, `unread`; what failed, and what to do."""
    outcome = _OUTCOMES.get(row.memory_failure)
    if outcome is not None:
        return f"{row.memory_failure}{wording.colon}{wording.say(outcome)}"
    if row.memory_failure == "yes":
        word, told = str(row.retry), [failure_of(row, wording), restart(row, wording)]
    else:
        word, told = row.memory_failure, [failure_of(row, wording), wording.say(texts.PERHAPS)]
    place = "" if row.first_file is None else f" ({row.first_file}{'' if row.first_line is None else f':{row.first_line}'})"
    return f"{word}{wording.colon}{wording.semicolon.join(part for part in told if part)}{place}"
