"""The tools that say what happened: to a run, to many jobs, to a machine, in a snapshot, between two runs."""

from __future__ import annotations

import os
from itertools import chain, islice
from typing import Annotated

from pydantic import Field

from oomdoctor import __version__
from oomdoctor.api.compare import compare
from oomdoctor.api.diagnose import diagnose
from oomdoctor.api.environment import environment
from oomdoctor.api.fleet.triage import triage
from oomdoctor.api.inputs import default_jobs, unread_lines
from oomdoctor.api.runs.snapshot import snapshot
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.errors import UsageError
from oomdoctor.machine.facts import environment_facts
from oomdoctor.mcp.answers import ComparisonAnswer, DiagnosisAnswer, FailedJob, FindingsAnswer, TriageAnswer
from oomdoctor.mcp.toolbox import Toolbox
from oomdoctor.report.comparison.compare import compose as compose_comparison
from oomdoctor.report.diagnosis.certainty import finding_certainty, verdict_certainty
from oomdoctor.report.diagnosis.compose import compose as compose_diagnosis
from oomdoctor.report.diagnosis.typed_lines import settling_phase
from oomdoctor.report.machine.environment import compose_environment
from oomdoctor.report.runs.snapshot import compose as compose_snapshot
from oomdoctor.report.triage.row_text import redact_line
from oomdoctor.report.triage.screen import compose as compose_fleet
from oomdoctor.report.wire.comparison import convert_comparison
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.environment import convert_environment
from oomdoctor.report.wire.fleet.summary import convert_fleet
from oomdoctor.report.wire.runs.snapshot import convert_snapshot
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.parts import Parts

_NOT_READ = 3
Logs = Annotated[list[str], Field(description="Logs of one run: files (including .gz, .zst, .xz, .bz2), folders, or an evidence folder.")]
Configs = Annotated[list[str], Field(description="Config files and launch scripts of the run.")]


class DiagnosingTools:
    """Each public method is a tool."""

    def __init__(self, box: Toolbox) -> None:
        self._box = box

    def diagnose_log(
        self,
        logs: Logs = [],  # noqa: B006 - the default stands in the tool's schema
        text: Annotated[str, Field(description="The text of a log, instead of files.")] = "",
        config: Configs = [],  # noqa: B006
        series: Annotated[list[str], Field(description="Memory over time: CSV from nvidia-smi, DCGM, trackers.")] = [],  # noqa: B006
        snapshots: Annotated[list[str], Field(description="Memory snapshots of the run (pickle).")] = [],  # noqa: B006
    ) -> DiagnosisAnswer:
        """Find out whether a run ran out of memory, which memory it was, what failed first, why, and what to change.

        Give the files of one run, or pasted text. Read-only.
        """
        if bool(logs) == bool(text):
            raise UsageError("give the run's files as `logs`, or a log as `text`")
        roots = self._box.roots
        diagnosis = diagnose(
            text.encode("utf-8", "replace") if text else roots.paths(logs),
            config=roots.paths(config),
            series=roots.paths(series),
            snapshot=roots.paths(snapshots),
            jobs=default_jobs(),
        )
        if unread := unread_lines(diagnosis):
            raise UsageError("; ".join(unread))
        wording = self._box.wording
        told = self._box.tell(
            compose_diagnosis(diagnosis, wording, __version__),
            lambda: convert_diagnosis(diagnosis, wording, __version__),
        )
        verdict, root = diagnosis.case.verdict, next((incident.root for incident in diagnosis.case.incidents), None)
        first = next(iter(diagnosis.findings), None)
        return DiagnosisAnswer(
            **told._asdict(),
            memory_failure=verdict.memory_failure,
            kind=verdict.kind.value,
            certainty=verdict_certainty(diagnosis).value,
            source=root.place.source if root else None,
            line=root.place.line if root else None,
            rank=root.rank if root else None,
            requested_bytes=root.size("requested_bytes") if root else None,
            problem=first.id if first else None,
            confidence=finding_certainty(diagnosis, first).value if first else None,
            fixes=[fix.id for fix in first.fixes] if first else [],
            settled_by=_settled_by(diagnosis, wording),
        )

    def triage_logs(
        self,
        paths: Annotated[list[str], Field(description="Folders or files with the logs of many jobs.", min_length=1)],
        records: Annotated[list[str], Field(description="Scheduler records: sacct --parsable2, JSON from Slurm or kubectl.")] = [],  # noqa: B006
        offset: Annotated[int, Field(description="The first row to return.", ge=0)] = 0,
        limit: Annotated[int, Field(description="Rows to return.", ge=1, le=100)] = 5,
    ) -> TriageAnswer:
        """Find the jobs that ran out of memory in folders of job logs, and group the same failures.

        Rows are kept in oomdoctor's cache, so a second call reads only what is new. The logs are not modified.
        """
        result = triage(self._box.roots.paths(paths), redact=redact_line, records=self._box.roots.paths(records), jobs=os.cpu_count() or 1)
        fleet, known, wording = result.fleet, result.known, self._box.wording
        told = self._box.tell(compose_fleet(fleet, known, wording, __version__), lambda: convert_fleet(fleet, known, wording))
        failed = (row for row in Parts(result.folder).rows() if row.memory_failure == "yes")
        not_read = (f"{file.path}: {file.why}" for row in Parts(result.folder).rows() for file in row.unreadable)
        return TriageAnswer(
            **told._asdict(),
            jobs=fleet.jobs,
            failed=fleet.failed,
            possible=fleet.possible,
            unread=fleet.unread,
            not_read=list(islice(chain(result.problems, not_read), _NOT_READ)),
            rows=[_failed_job(row) for row in islice(failed, offset, offset + limit)],
            next_offset=offset + limit if offset + limit < fleet.failed else None,
        )

    def read_environment(
        self,
        report: Annotated[
            str | None, Field(description="A file with the output of collect_env, nvidia-smi, pip freeze ...; default: this machine.")
        ] = None,
    ) -> FindingsAnswer:
        """Describe a machine, its cards, driver and torch, and anything that makes runs fail. Does not import torch. Read-only."""
        machine = environment(None if report is None else self._box.roots.path(report))
        facts, wording = environment_facts(machine.environment), self._box.wording
        told = self._box.tell(
            compose_environment(machine.environment, machine.findings, facts, wording, __version__, report, bugs=machine.bugs),
            lambda: convert_environment(machine.environment, machine.findings, wording, __version__, redact=True, bugs=machine.bugs),
        )
        return FindingsAnswer(**told._asdict(), findings=[finding.id for finding in machine.findings])

    def read_snapshot(
        self,
        files: Annotated[list[str], Field(description="Memory snapshots of one run, one file per rank.", min_length=1)],
    ) -> FindingsAnswer:
        """Show from PyTorch memory snapshots what was holding memory when it ran out, why the request did not fit, and what is growing.

        Nothing in a file is executed.
        """
        report = snapshot(self._box.roots.paths(files))
        if not report.files:
            raise UsageError("; ".join(f"{gap.what}: {gap.why}" for gap in report.gaps))
        wording = self._box.wording
        told = self._box.tell(
            compose_snapshot(report, wording, __version__, is_page=False), lambda: convert_snapshot(report, wording, __version__)
        )
        return FindingsAnswer(**told._asdict(), findings=[finding.id for finding in report.findings])

    def compare_runs(
        self,
        before: Annotated[str, Field(description="A log, a folder of logs, a config, or a file that describes a machine.")],
        after: Annotated[str, Field(description="The same for the other run.")],
        config_before: Configs = [],  # noqa: B006
        config_after: Configs = [],  # noqa: B006
    ) -> ComparisonAnswer:
        """Show what changed between two runs, configs or machines that affects memory, most suspicious first. Read-only."""
        roots, wording = self._box.roots, self._box.wording
        comparison = compare(roots.path(before), roots.path(after), config=(roots.paths(config_before), roots.paths(config_after)))
        told = self._box.tell(
            compose_comparison(comparison, wording, __version__), lambda: convert_comparison(comparison, wording, __version__)
        )
        return ComparisonAnswer(**told._asdict(), matters=comparison.matters, changes=[change.id for change in comparison.changes])


def _failed_job(row: JobRow) -> FailedJob:
    return FailedJob(
        job=row.native,
        user=row.user,
        node=row.node,
        kind=row.kind,
        first_file=row.first_file,
        first_rank=row.first_rank,
        group=row.group,
        retry=row.retry,
    )


def _settled_by(diagnosis: Diagnosis, wording: Wording) -> str | None:
    """Return the evidence that tells when the run died, else why."""
    if diagnosis.open_phase is not None:
        return settling_phase(diagnosis.open_phase, wording)
    return None if diagnosis.open_cause is None else wording.say(diagnosis.open_cause.settled_by)
