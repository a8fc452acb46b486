"""Process one family of files: which jobs they belong to, the outcome of each, and one row per job. Every engine runs this."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from msgspec.structs import replace

from oomdoctor.case.event import Kind, Value
from oomdoctor.case.incident import Incident
from oomdoctor.findings.derived import derived
from oomdoctor.findings.facts import log_facts
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.layout import EXPORTS, LAYOUTS, ExportRecord
from oomdoctor.reading.progress import has_trained
from oomdoctor.triage.archives import archive_families
from oomdoctor.triage.assembly import assemble
from oomdoctor.triage.elsewhere.loki_answer import entries_in, is_answer
from oomdoctor.triage.exports import ExportReader
from oomdoctor.triage.fingerprint import campaign, config_key, fingerprint, group_of, is_held_by_others
from oomdoctor.triage.job import Attempt, Job, JobFile
from oomdoctor.triage.line_times import LineTime, stated_time
from oomdoctor.triage.log_file import LogFile, PlacedFile, inputs_key
from oomdoctor.triage.outcome import AttemptOutcome, JobReader
from oomdoctor.triage.placing import ARCHIVE, Layouts
from oomdoctor.triage.policy.restart import FailedStart, retry_of
from oomdoctor.triage.row import RECORD_ONLY, DaySource, JobRow, Retry, UnreadFile
from oomdoctor.triage.scheduler.contradictions import contradictions
from oomdoctor.triage.scheduler.record import JobRecord
from oomdoctor.triage.scheduler.records import Records
from oomdoctor.triage.store.identity import JobNames, names_of, names_of_exported, stem_of_export
from oomdoctor.triage.store.quiet_logs import QuietLogs
from oomdoctor.triage.texts import lines_of, read_start, read_text

try:
    import pwd
except ImportError:  # not available on every system
    pwd = None  # type: ignore[assignment]

_TEXT = 300
_LINES = (".jsonl", ".ndjson")
_ROWS = re.compile(rb'\{"job":"[^"\n]+","native":"[^"\n]*","layout":"')
"""The beginning of a file of rows written by triage itself: its statements about jobs are not job logs."""
_NOT_WHOLE = "its middle was not read: it exceeds the limit for a job"
_HOST_NAME = re.compile(r"(?!localhost)[A-Za-z][\w-]{0,62}(?:\.[\w.-]{1,120})?")
_VERSIONS = {"log.torch_version": "torch", "log.cuda_version": "cuda", "log.driver_version": "driver", "log.card": "card"}

Redact = Callable[[str], str]
Lines = Callable[[], Iterator[bytes]]


class Worker:
    """Creates rows for families of files, with the rules of one pack."""

    def __init__(
        self, pack: Pack, redact: Redact, *, tool: str, rules: str, records: Records | None = None, tells_settings: bool = True
    ) -> None:
        """`tells_settings`: include the model, framework and versions of failed jobs, for which their logs are read once more."""
        self._pack = pack
        self._tells_settings = tells_settings
        self._layouts = Layouts(list(pack.records(LAYOUTS)))
        exports = list(pack.records(EXPORTS))
        self._exports = ExportReader(exports)
        self._of_stores = frozenset(record.id for record in exports)
        self._reader = JobReader(pack)
        self._redact = redact
        self._records = records
        self._tool, self._rules = tool, rules

    def rows(self, family: str, files: Sequence[PlacedFile], quiet: QuietLogs | None = None) -> Iterator[tuple[JobRow, JobNames]]:
        """Yield a row for each job in files that are read together, with the keys that identify it.

        Logs that were quiet are read on from where they were.
        """
        for job in self.jobs(family, files):
            row, outcome = self.judged(job, quiet=quiet)
            marks = [(read.mark, read.ended is not None) for read in outcome.reads if read.mark is not None]
            if job.layout in self._of_stores:
                yield row, names_of_exported(job, marks)
            else:
                yield row, names_of(row, record_name(job.layout, job.family, job.native), marks, job.part_of)

    def jobs(self, family: str, files: Sequence[PlacedFile]) -> Iterator[Job]:
        """Yield the jobs of files that are read together."""
        if len(files) == 1:
            only = files[0]
            if only.layout == ARCHIVE:
                yield from self._of_archive(family, only.file)
                return
            if only.path.endswith(_LINES) and _ROWS.match(read_start(only.path)):
                return
            export, lines = self._export(only)
            if export is not None:
                yield from self._of_export(family, only, export, lines)
                return
        for job in assemble(family, files, read_start, self._layouts.backward):
            yield self._unwrapped(job) if job.layout == "docker" else job

    def _export(self, placed: PlacedFile) -> tuple[ExportRecord | None, Lines]:
        """Return which log store wrote a file (None if none did), and a function that reads its lines."""
        if placed.file.problem is not None or placed.layout not in ("plain", "kubernetes-link"):
            return None, partial(iter, ())
        start, lines = read_start(placed.path), partial(lines_of, placed.path)
        if is_answer(start):
            lines = partial(entries_in, placed.path)
            start = next(lines(), b"")
        return self._exports.record_of(start), lines

    def _of_export(self, family: str, placed: PlacedFile, record: ExportRecord, lines: Lines) -> Iterator[Job]:
        """Yield the jobs in an export, each with its own lines."""
        for native, text in self._exports.jobs(record, lines, stem_of_export(placed.path)):
            file = placed.file if text.is_whole else replace(placed.file, problem=_NOT_WHOLE)
            piece = JobFile(file=file, node=text.labels.node, ended=text.ended, text=text.data)
            yield Job(
                family=family, layout=record.id, native=native, folder=os.path.dirname(placed.path), name=text.labels.name or native,
                user=text.labels.user, part_of=self._pods_job(native, text.labels.namespace),
                attempts=(Attempt(number=0, streams=((piece,),)),),
            )  # fmt: skip

    def _pods_job(self, native: str, namespace: str | None) -> tuple[str, ...]:
        """Return the records' name for the job of an exported pod, as kubelet's folder for the pod would give it."""
        if namespace is None:
            return ()
        known = self._layouts.facts(f"/var/log/pods/{namespace}_{native}_{'0' * 8}/main/0.log")
        return (f"{namespace}/{native if known is None else known[1].get('job', native)}",)

    def _unwrapped(self, job: Job) -> Job:
        """Return a job whose files are JSON lines, with their text."""
        attempts = (
            replace(attempt, streams=tuple(tuple(map(self._text, stream)) for stream in attempt.streams)) for attempt in job.attempts
        )
        return replace(job, attempts=tuple(attempts))

    def _text(self, piece: JobFile) -> JobFile:
        text = read_text(piece.file)
        record = self._exports.record_of(text.data) if text.data else None
        if record is None or text.data is None:
            return piece
        lines = list(self._exports.lines(record, text.data.split(b"\n")))
        told = next((line.time for line in reversed(lines) if line.time is not None), None)
        joined = "".join(line.text for line in lines)
        return replace(piece, text=joined.encode("utf-8", "replace"), ended=None if told is None else stated_time(told))

    def _of_archive(self, family: str, file: LogFile) -> Iterator[Job]:
        """Yield the jobs whose files are members of an archive."""
        for files, texts in archive_families(file, self._layouts):
            for job in assemble(family, files, lambda path: texts.get(path, b"")[: 64 << 10], self._layouts.backward):  # noqa: B023
                yield _with_texts(job, texts)

    def row(self, job: Job, *, newest: bool = False) -> JobRow:
        """Return a job's row: for the start that first ran out of memory, or for the newest one, whatever its outcome."""
        return self.judged(job, newest=newest)[0]

    def judged(self, job: Job, *, newest: bool = False, quiet: QuietLogs | None = None) -> tuple[JobRow, AttemptOutcome]:
        """Return a job's row, and the outcome of the start it describes."""
        outcomes = [self._reader.outcome(attempt, quiet) for attempt in job.attempts]
        records = self._records_of(job)
        chosen = outcomes[-1] if newest else _first_failed(outcomes)
        row = self._plain_row(job, outcomes, chosen)
        row = _with_record(row, records)
        if row.memory_failure in ("yes", "possible") and chosen.incidents and row.evidence == "log":
            row = self._with_failure(row, job, chosen, [other for other in outcomes if other is not chosen])
        elif row.memory_failure == "yes":
            row = _by_record(row, campaign(row.user, job.submitted_in, row.name, job.folder, job.native))
        return replace(row, contradictions=contradictions(row, records)), chosen

    def _plain_row(self, job: Job, outcomes: Sequence[AttemptOutcome], chosen: AttemptOutcome) -> JobRow:
        verdict = chosen.verdict
        files = job.files
        problems = [
            UnreadFile(path=read.file.path, why=read.problem) for attempt in outcomes for read in attempt.reads if read.problem is not None
        ]
        unread = all(attempt.is_unread for attempt in outcomes)
        failed = verdict.memory_failure
        ended, source, zone = _ended(outcomes, files)
        error = chosen.error
        return JobRow(
            job=job.key,
            native=job.native,
            layout=job.layout,
            name=job.name,
            user=job.user or _user(files),
            attempt=chosen.number,
            attempts=len(outcomes),
            files=tuple(file.path for file in files),
            bytes=sum(file.size for file in files),
            read_bytes=sum(read.read.source.size for attempt in outcomes for read in attempt.reads),
            unreadable=tuple(problems),
            memory_failure="unread" if unread else "yes" if failed == "yes" else "possible" if failed == "possible" else "no",
            evidence="log" if failed != "no" else None,
            settle=verdict.settle,
            kind="none" if unread else verdict.kind.value if failed != "no" else Kind.NONE.value,
            certainty=verdict.certainty.value if failed != "no" else None,
            survived=verdict.survived,
            recovered=failed == "yes" and not outcomes[-1].failed and chosen is not outcomes[-1],
            error=None if error is None else self._redact(error)[:_TEXT],
            ended=ended,
            day=None if ended is None else _day(ended),
            day_source=source,
            zone=zone,
            tool=self._tool,
            rules=self._rules,
            key=inputs_key(files),
            scanned_at=int(time.time()),
        )

    def _with_failure(self, row: JobRow, job: Job, chosen: AttemptOutcome, others: Sequence[AttemptOutcome]) -> JobRow:
        """Return a row with the facts in its failure message and its grouping keys; `others` are the job's other starts."""
        incident = chosen.incidents[0]
        root = incident.root
        file = next((read.file for read in chosen.reads if read.file.path == root.place.source), None)
        settings = self._settings(chosen) if self._tells_settings else {}
        node = (file.node if file is not None else None) or (row.nodes[0] if len(row.nodes) == 1 else None) or _node(incident) or row.node
        figures = derived(root)
        family = self._reader.reader.recogniser.signatures[root.signature].family or root.signature
        whose = campaign(row.user, job.submitted_in, row.name, job.folder, job.native)
        held = figures.get("other_processes_bytes")
        framework = settings.get("log.framework")
        model = settings.get("log.model_name_or_path")
        return replace(
            row,
            model=str(model) if model is not None else None,
            config_key=config_key(settings),
            node=node,
            signature=root.signature,
            first_file=root.place.source,
            first_line=root.place.line,
            first_offset=root.place.offset,
            first_rank=_rank(incident, file),
            local_rank=file.local_rank if file is not None else None,
            gpu=gpu if isinstance(gpu := root.fields.get("gpu_index"), int) else None,
            phase=incident.phase,
            requested_bytes=root.size("requested_bytes"),
            total_bytes=root.size("total_bytes"),
            free_bytes=root.size("free_bytes"),
            used_by_others_bytes=held if isinstance(held, int) else None,
            text=_shortened(self._redact(root.text)),
            framework=str(framework) if framework is not None else None,
            versions={name: str(settings[fact]) for fact, name in _VERSIONS.items() if fact in settings},
            others_hold_card=is_held_by_others(figures),
            fingerprint=fingerprint(incident),
            campaign=whose,
            group=group_of(incident, family, whose),
            retry=_retry(chosen, others, settings, recovered=row.recovered),
        )

    def _settings(self, chosen: AttemptOutcome) -> Mapping[str, Value]:
        """Return the settings shown in a failed attempt's logs: the file with the failure, and the launcher's output."""
        source = chosen.incidents[0].root.place.source
        reads = [read for read in chosen.reads if read.file.path == source or read.file.is_copy][:4]
        events = []
        for read in reads:
            text = read_text(read.file.file) if read.file.text is None else None
            data = text.data if text is not None else read.file.text
            if data:
                events += self._reader.reader.read_one(read.file.path, data).events
        return log_facts(events, self._pack.frameworks, [read.read.last for read in reads])

    def _records_of(self, job: Job) -> tuple[JobRecord, ...]:
        if self._records is None:
            return ()
        return self._records.of(record_name(job.layout, job.family, job.native))


def _ended(outcomes: Sequence[AttemptOutcome], files: Sequence[LogFile]) -> tuple[int | None, DaySource | None, str | None]:
    """Return when a job ended, the source of that time, and its zone: its newest line, otherwise its newest file."""
    told = max((read.ended for attempt in outcomes for read in attempt.reads if read.ended is not None), key=_seconds, default=None)
    if told is not None:
        return told.seconds, "log", told.zone
    newest = max((file.modified for file in files), default=0)
    return (newest // 10**9, "file", "UTC") if newest else (None, None, None)


def _seconds(time: LineTime) -> int:
    return time.seconds


def _shortened(text: str) -> str:
    """Return the beginning of a message, with a mark if it continues."""
    return text if len(text) <= _TEXT else text[: _TEXT - 1].rstrip() + "…"


def record_name(layout: str, family: str, native: str) -> str:
    """Return the name by which records know a job; in `family`, the part after it does not matter."""
    return family.split("\t")[1] if layout == "kubernetes-pod" else native


def row_of_record(records: Sequence[JobRecord], *, tool: str, rules: str) -> JobRow:
    """Return the row of a job without a log: the scheduler reports out of memory."""
    name = records[0].job
    native = name.rpartition("/")[2]
    bare = JobRow(job=f"{RECORD_ONLY}\t{name}", native=native, layout=RECORD_ONLY, tool=tool, rules=rules, scanned_at=int(time.time()))
    row = _with_record(bare, records)
    return _by_record(row, campaign(row.user, name.rpartition("/")[0], row.name, "", native))


def _by_record(row: JobRow, whose: str) -> JobRow:
    """Return the row of a failure shown only by a record, together with its duplicates."""
    return replace(row, campaign=whose, fingerprint=row.kind, group=f"{row.kind}-{whose}", retry="more-memory")


def _with_texts(job: Job, texts: Mapping[str, bytes]) -> Job:
    attempts = (
        replace(
            attempt,
            streams=tuple(tuple(replace(piece, text=texts.get(piece.path, b"")) for piece in stream) for stream in attempt.streams),
        )
        for attempt in job.attempts
    )
    return replace(job, attempts=tuple(attempts))


def _with_record(row: JobRow, records: Sequence[JobRecord]) -> JobRow:
    """Return a row with the scheduler's information; if only that shows a failure, the row says so."""
    if not records:
        return row
    first = next((record for record in records if record.out_of_memory), records[0])
    nodes = tuple(dict.fromkeys(node for record in records for node in record.nodes))
    row = replace(
        row,
        name=first.name or row.name,
        user=first.user or row.user,
        account=first.account,
        partition=first.partition,
        state=first.state,
        exit_code=first.exit_code,
        submitted=first.submitted,
        started=first.started,
        ended=first.ended or row.ended,
        day=_day(first.ended) if first.ended else row.day,
        day_source="record" if first.ended else row.day_source,
        zone=None if first.ended else row.zone,
        nodes=nodes,
        node=first.nodes[0] if first.out_of_memory and first.nodes else row.node,
        gpu_seconds_lost=_lost(row, first),
    )
    if first.out_of_memory and row.memory_failure == "possible" and row.kind == Kind.HOST_OOM.value:
        return replace(row, memory_failure="yes", certainty="likely", settle=None)
    if first.out_of_memory and row.memory_failure != "yes":
        return replace(
            row, memory_failure="yes", evidence=first.source, kind=Kind.HOST_OOM.value, certainty="likely", first_rank=first.rank,
            settle=None, gpu_seconds_lost=_lost(replace(row, memory_failure="yes"), first),
        )  # fmt: skip
    if row.memory_failure == "possible" and all(record.exit_code == 0 for record in records):
        return replace(row, memory_failure="no", kind=Kind.NONE.value, certainty=None, evidence=None, settle=None)
    return row


def _lost(row: JobRow, record: JobRecord) -> int | None:
    if row.memory_failure != "yes" or record.gpus is None or record.started is None or record.ended is None:
        return None
    return max(0, record.ended - record.started) * record.gpus


def _rank(incident: Incident, file: JobFile | None) -> int | None:
    """Return the rank of the first failure.

    What the message or the path says of it, what a launcher says of the process that ended first, the number of the pod, the number of
    Slurm's task.
    """
    if incident.root.rank is not None:
        return incident.root.rank
    if file is not None and file.rank is not None:
        return file.rank
    ends = [event for event in incident.consequences if "exit_code" in event.fields or "signal" in event.fields]
    of_ends = (event.fields.get("rank", event.rank) for event in ends)
    of_file = (None, None) if file is None else (file.index, file.local_rank)
    of_tasks = (event.fields.get("task") for event in ends)
    return next((told for told in (*of_ends, *of_file, *of_tasks) if isinstance(told, int)), None)


def _node(incident: Incident) -> str | None:
    """Return the host on which a process ended first, as named by a launcher or the scheduler."""
    hosts = (event.fields.get("host") for event in (incident.root, *incident.consequences))
    return next((host.split(".")[0] for host in hosts if isinstance(host, str) and _HOST_NAME.fullmatch(host)), None)


def _first_failed(outcomes: Sequence[AttemptOutcome]) -> AttemptOutcome:
    """Return the start that first ran out of memory; otherwise one that possibly did, otherwise the newest."""
    by_verdict = {attempt.verdict.memory_failure: attempt for attempt in reversed(outcomes)}
    return by_verdict.get("yes") or by_verdict.get("possible") or outcomes[-1]


def _retry(chosen: AttemptOutcome, others: Sequence[AttemptOutcome], settings: Mapping[str, Value], *, recovered: bool) -> Retry:
    """Return what a restart needs if memory failed."""
    if chosen.verdict.memory_failure != "yes":
        return "unknown"
    failed = [_failed_start(other, {}) for other in others if other.verdict.memory_failure == "yes" and other.incidents]
    return retry_of(_failed_start(chosen, settings), failed, recovered=recovered)


def _failed_start(attempt: AttemptOutcome, settings: Mapping[str, Value]) -> FailedStart:
    """Return what is known of a start that ran out of memory."""
    incident = attempt.incidents[0]
    place = incident.root.place
    step = incident.root.size("failed_step")
    trained = False
    for read in attempt.reads:
        if read.file.path == place.source:
            step = read.read.passed.get(place.offset) if step is None else step
            trained = (step or 0) > 1 or _has_trained(read.file, place.offset)
    return FailedStart(incident=incident, figures=derived(incident.root), step=step, has_trained=trained, settings=settings)


def _has_trained(file: JobFile, offset: int) -> bool:
    """Return whether a log shows training before an offset; assumed for a log too large to be held."""
    data = read_text(file.file).data if file.text is None else file.text
    return data is None or has_trained(data[:offset])


def _user(files: Sequence[LogFile]) -> str | None:
    """Return the name of the files' owner; None for root, or if the system does not know it."""
    owner = next((file.owner for file in files if file.owner), 0)
    if not owner or pwd is None:
        return None
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _day(seconds: int) -> str:
    return _day_of_number(seconds // 86_400)


@lru_cache(maxsize=512)
def _day_of_number(number: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(number * 86_400))
