"""A folder of several jobs -> one answer with a line for each, grouped as in triage; a full diagnosis only if a single one failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor import __version__
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.case import Case, RunLine, Source
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Kind
from oomdoctor.case.gap import Gap
from oomdoctor.case.text import Text
from oomdoctor.comparing.several_runs import name_runs, verdict_of_runs
from oomdoctor.ingest.runs import group_by_run
from oomdoctor.ingest.sources import MissingSource
from oomdoctor.judging.verdict import verdict_of_a_part
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.layout import LAYOUTS
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.triage.job import Job, as_one
from oomdoctor.triage.listing import list_folders
from oomdoctor.triage.log_file import MEMBER, LogFile, PlacedFile
from oomdoctor.triage.placing import PLAIN, Layouts
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.work import Worker

_JUDGED = 24
"""Up to this many failures get individual findings; beyond that, only the first of each group."""


class _Judged(Struct, frozen=True):
    """A job with its result."""

    job: Job
    row: JobRow
    line: RunLine


def diagnose_jobs(
    paths: Sequence[str], sources: Sequence[str | MissingSource], pack: Pack, *, jobs: int, machine: MachineSource | None
) -> Diagnosis | None:
    """Return a diagnosis of the jobs whose logs are below some paths; None if they are one job, or none of them failed.

    `sources` are the files below the paths that are read. If only one job failed, its full diagnosis comes with a line for each.
    """
    present = frozenset(source for source in sources if isinstance(source, str))
    worker = Worker(pack, str, tool=__version__, rules="", tells_settings=False)
    named = _jobs(paths, present, worker, pack)
    if len(named) < 2:
        return None
    holders = Counter(file.path for _, job in named for file in job.files)
    judged = [
        _judged(name, job, worker, is_apart=not any(MEMBER in file.path or holders[file.path] > 1 for file in job.files))
        for name, job in named
    ]
    if any(job.layout != PLAIN for _, job in named):
        judged = [each for each in judged if each.job.layout != PLAIN or each.line.failed]
    failed = [each for each in judged if each.line.failed]
    if not failed:
        return None
    missing = [source for source in sources if isinstance(source, MissingSource)]
    alone = _own_logs(failed[0]) if len(failed) == 1 and failed[0].line.verdict.settle != "unread-rest" else []
    if alone:
        diagnosis = diagnose_logs([*alone, *missing], pack, jobs=jobs, machine=machine, is_one=True)
        return replace(diagnosis, case=replace(diagnosis.case, runs=tuple(each.line for each in judged)))
    titles = _first_findings(failed, pack)
    lines = [replace(each.line, title=titles.get(_failure_of(each))) for each in judged]
    return Diagnosis(case=_case(judged, lines, missing), findings=())


def _jobs(paths: Sequence[str], present: frozenset[str], worker: Worker, pack: Pack) -> list[tuple[str, Job]]:
    """Return the jobs with a name for each: from their paths or, if no path is known, from their run numbers."""
    layouts = Layouts(list(pack.records(LAYOUTS)))
    families: dict[str, list[PlacedFile]] = {}
    for listed in list_folders(paths):
        for family, placed in layouts.place(listed):
            if placed.path in present:
                families.setdefault(family, []).append(placed)
    jobs = [job for family, files in families.items() for job in worker.jobs(family, files)]
    known = [job for job in jobs if job.layout != PLAIN]
    if len(known) == 1:
        return []  # what is next to a job's logs belongs to it
    plain = [job for job in jobs if job.layout == PLAIN]
    groups = [[plain[number] for number in numbers] for numbers in group_by_run([job.files[0].path for job in plain])]
    names = name_runs([[file.path for job in group for file in job.files] for group in groups]) if groups else []
    return [*((job.native, job) for job in known), *((name, as_one(group)) for name, group in zip(names, groups))]


def _judged(name: str, job: Job, worker: Worker, *, is_apart: bool) -> _Judged:
    row, outcome = worker.judged(job)
    first = outcome.incidents[0] if outcome.incidents else None
    is_echo = first is not None and row.memory_failure == "no" and first.kind in (Kind.CONSEQUENCE, Kind.OTHER_ERROR)
    incident = None if first is None or is_echo else replace(first, root=replace(first.root, rank=row.first_rank))
    error = outcome.error or (first.root.text if first is not None else None) if incident is None else None
    is_whole = row.memory_failure != "unread" and not row.unreadable
    line = RunLine(
        name=name,
        sources=row.files,
        verdict=outcome.verdict if is_whole else verdict_of_a_part(outcome.verdict),
        incident=incident,
        error=error,
        rank=row.first_rank,
        group=row.group,
        is_apart=is_apart,
    )
    return _Judged(job, row, line)


def _failure_of(judged: _Judged) -> str | None:
    return judged.line.group or (judged.line.incident.root.signature if judged.line.incident is not None else None)


def _first_findings(failed: Sequence[_Judged], pack: Pack) -> dict[str | None, Text | None]:
    """Return the first finding for each failure; failures that are alike share that of the first."""
    titles: dict[str | None, Text | None] = {}
    for each in failed:
        failure = _failure_of(each)
        logs = _own_logs(each) if failure is not None and failure not in titles and len(titles) < _JUDGED else []
        if logs:
            findings = diagnose_logs(logs, pack, is_one=True).findings
            titles[failure] = findings[0].title if findings else None
    return titles


def _own_logs(judged: _Judged) -> list[str]:
    """Return the logs of a failed job's run; empty if they are in a file with those of others."""
    attempts = [attempt for attempt in judged.job.attempts if attempt.number == judged.row.attempt and judged.line.is_apart]
    return [piece.path for attempt in attempts for stream in attempt.streams for piece in stream]


def _case(judged: Sequence[_Judged], lines: Sequence[RunLine], missing: Sequence[MissingSource]) -> Case:
    unread = {file.path: file.why for each in judged for file in each.row.unreadable}
    files: dict[str, LogFile] = {file.path: file for each in judged for file in each.job.files}
    decided = verdict_of_runs(lines)
    return Case(
        sources=tuple(
            Source(name=path, size=0 if path in unread else file.size, complete=path not in unread) for path, file in files.items()
        ),
        events=tuple(line.incident.root for line in lines if line.incident is not None),
        incidents=tuple(line.incident for line in lines if line.incident is not None),
        verdict=verdict_of_a_part(decided) if any(name.is_log for name in missing) else decided,
        runs=tuple(lines),
        gaps=(*(Gap(what=name.name, why=name.reason) for name in missing), *(Gap(what=path, why=why) for path, why in unread.items())),
        not_read=(*(name.name for name in missing if name.is_log), *unread),
    )
