"""The diagnosis of several runs: one line each, plus a full diagnosis if only one failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from oomdoctor.case.case import Case, RunLine
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Kind
from oomdoctor.case.gap import Gap
from oomdoctor.case.text import Text
from oomdoctor.comparing.several_runs import name_runs, verdict_of_runs
from oomdoctor.ingest.sources import MissingSource
from oomdoctor.judging.verdict import decide, verdict_of_a_part
from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.parse.reading import SourceEvents

_JUDGED = 24
"""Up to this many runs each get their own findings; beyond that, only the first run with each failure."""


def story_of(read: SourceEvents) -> str | None:
    """Return a log's own failure, as far as it distinguishes the log from others."""
    failure = next((event for event in read.events if event.is_failure or event.kind is Kind.LOOK_ALIKE), None)
    if failure is not None:
        return failure.kind.value
    errors = [event for event in read.events if event.kind is Kind.OTHER_ERROR]
    return str(errors[-1].fields["error"]) if errors else None


def diagnose_each(
    runs: Sequence[list[SourceEvents]],
    missing: Sequence[MissingSource],
    diagnose_run: Callable[[list[SourceEvents]], Diagnosis],
    tree: LexiconNode,
) -> Diagnosis:
    """Return a diagnosis with one line per run, and in full if only one failed: one run's failure says nothing about the others."""
    names = name_runs([[read.source.name for read in run] for run in runs])
    titles: dict[str | None, Text | None] = {}
    lines: list[RunLine] = []
    for name, run in zip(names, runs):
        line = _line(name, run, tree)
        failure = line.incident.root.signature if line.incident is not None else None
        if failure is not None and (failure not in titles or len(runs) <= _JUDGED):
            judged = diagnose_run(run).findings
            titles[failure] = judged[0].title if judged else None
        lines.append(replace(line, title=titles.get(failure)))
    failed = [run for line, run in zip(lines, runs) if line.failed]
    if len(failed) <= 1:
        # The other runs succeeded, so the findings concern this one or all of them.
        diagnosis = diagnose_run(failed[0] if failed else [read for run in runs for read in run])
        return replace(diagnosis, case=replace(diagnosis.case, runs=tuple(lines) if failed else ()))
    decided = verdict_of_runs(lines)
    if any(name.is_log for name in missing):
        decided = verdict_of_a_part(decided)
    reads = [read for run in runs for read in run]
    case = Case(
        sources=tuple(read.source for read in reads),
        events=tuple(event for read in reads for event in read.events),
        incidents=tuple(line.incident for line in lines if line.incident is not None),
        verdict=decided,
        runs=tuple(lines),
        unread=sum(read.unread for read in reads),
        gaps=(*(Gap(what=name.name, why=name.reason) for name in missing), *(gap for read in reads for gap in read.gaps)),
        not_read=(*(name.name for name in missing if name.is_log), *(read.source.name for read in reads if not read.source.complete)),
    )
    return Diagnosis(case=case, findings=())


def _line(name: str, run: list[SourceEvents], tree: LexiconNode) -> RunLine:
    """Return the outcome of a single run."""
    judged = decide([event for read in run for event in read.events], run, tree)
    failures, decided = judged.incidents, judged.verdict
    if not all(read.source.complete for read in run):
        decided = verdict_of_a_part(decided)
    error = judged.facts.get("log.last_error")
    return RunLine(
        name=name,
        sources=tuple(read.source.name for read in run),
        verdict=decided,
        incident=failures[0] if failures else None,
        rank=failures[0].root.rank if failures else None,
        error=None if error is None else str(error),
    )
