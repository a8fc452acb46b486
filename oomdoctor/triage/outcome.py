"""Decide from a job's text whether memory failed, which memory, and where first.

Only what holds a failure's literal, or ends with an error that speaks of memory, is parsed; all else costs one pass over its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.case import Source, Verdict
from oomdoctor.case.event import Certainty, Event, Kind
from oomdoctor.case.incident import Incident
from oomdoctor.ingest.encodings import NOT_TEXT
from oomdoctor.ingest.prefilter import make_prefilter
from oomdoctor.judging.verdict import decide
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.parse.reading import LogReader, SourceEvents
from oomdoctor.parse.recogniser import LAST_SIGNS, LAST_WORDS
from oomdoctor.triage.elsewhere.downloads import where
from oomdoctor.triage.exports import finish_line, unfinished_line
from oomdoctor.triage.job import Attempt, JobFile
from oomdoctor.triage.line_times import LineTime, last_time
from oomdoctor.triage.log_file import LogFile
from oomdoctor.triage.store.identity import TextMark, mark_of
from oomdoctor.triage.store.quiet_logs import QuietLogs, blocks_from
from oomdoctor.triage.texts import LARGE, FileText, read_end, read_first, read_text

_END = 64 << 10
_REACHES = 64 << 10
"""No message is longer: anything this far before new text is unrelated to it."""
_ORDERS = frozenset({"slurm-cancelled"})
"""Orders to stop that state no reason, from a user or an operator; they say nothing about text that cannot be read."""


class ReadFile(Struct, frozen=True):
    """A file of a job and the result of reading it."""

    file: JobFile
    read: SourceEvents
    problem: str | None = None
    ended: LineTime | None = None
    """When its last line was written, if that or a nearby line states it."""
    mark: TextMark | None = None
    """What distinguishes its text from others."""


class AttemptOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of one start of a job."""

    number: int
    verdict: Verdict
    reads: tuple[ReadFile, ...]
    incidents: tuple[Incident, ...] = ()
    error: str | None = None
    """The error it ended with if memory did not fail."""

    @property
    def failed(self) -> bool:
        """Whether it ended badly, for any reason."""
        return self.verdict.memory_failure != "no" or self.error is not None or any(not incident.survived for incident in self.incidents)

    @property
    def is_unread(self) -> bool:
        """Whether nothing of it could be read."""
        return not any(read.read.source.size for read in self.reads)


class JobReader:
    """Reads jobs with the rules of one pack."""

    def __init__(self, pack: Pack) -> None:
        self.reader = LogReader(pack)
        self._failures = self.reader.engines(None).failures
        self._endings = make_prefilter(list(LAST_SIGNS), list(range(len(LAST_SIGNS))), None)

    def outcome(self, attempt: Attempt, quiet: QuietLogs | None = None) -> AttemptOutcome:
        """Return the outcome of one start of a job; for logs without a failure so far, reading continues where it stopped."""
        reads = tuple(self._reads(attempt, quiet or QuietLogs()))
        return outcome_of(attempt.number, reads, self.reader.pack.lexicon)

    def _reads(self, attempt: Attempt, quiet: QuietLogs) -> Iterator[ReadFile]:
        """Read the files of an attempt: those of its processes before those that only repeat them."""
        for stream in sorted(attempt.streams, key=lambda stream: stream[0].is_copy):
            only = stream[0].file if len(stream) == 1 and stream[0].text is None else None
            read = None if only is None else self._read_on(only, quiet)
            if only is not None and read is not None:
                quiet.note(only)
                end = read_end(only)
                yield ReadFile(stream[0], read, None, last_time(end, only.modified), mark_of(read_first(only), end, only.size))
                continue
            for piece, text in _texts(stream):
                read = self.read(piece.path, text)
                if text.problem == NOT_TEXT and not read.events:
                    read = SourceEvents(Source(name=piece.path, size=0))
                if only is not None and quiet.takes(only) and text.as_it_lies and self._is_quiet(text, read):
                    quiet.note(only)
                first, last, size = _edges(piece.file, text, read)
                ended = piece.ended or last_time(last, piece.file.modified)
                yield ReadFile(piece, read, text.problem, ended, mark_of(first, last, size))

    def _is_quiet(self, text: FileText, read: SourceEvents) -> bool:
        """Return whether nothing in a text points to a failure; its ending is checked anew each time."""
        if text.data is None:
            return not read.gaps and all(event.kind is Kind.CONTEXT for event in read.events)
        return not self._failures.find(text.data, 0, len(text.data))

    def _read_on(self, file: LogFile, quiet: QuietLogs) -> SourceEvents | None:
        """Return the result of one reading of a log that was quiet so far; None if it has to be read as a whole."""
        until = quiet.read_until(file)
        if until is None or (until > LARGE) != (file.size > LARGE):
            return None
        last = b""
        try:
            for block in blocks_from(file, max(0, until - _REACHES), _REACHES):
                if self._tells(block, is_large=file.size > LARGE):
                    return None
                last = block
        except OSError:
            return None
        read = SourceEvents(Source(name=file.path, size=file.size))
        if file.size > LARGE or self._endings.find(last, max(0, len(last) - LAST_WORDS), len(last)):
            read.last = last[-_END:]
            read.events += self.reader.recogniser.last_words(read.last, file.path, file.size)
        return read

    def _tells(self, block: bytes, *, is_large: bool) -> bool:
        """Return whether the new part of a log may indicate a failure, or is more than plain lines."""
        if b"\0" in block or b" P " in block:
            return True
        if not is_large:
            return bool(self._failures.find(block, 0, len(block)))
        behind = self.reader.recogniser.behind
        literals = {number for number, _ in self.reader.engines(None).every.find(block, 0, len(block))}
        return any(signature.kind is not Kind.CONTEXT for number in literals for signature in behind(number))

    def read(self, path: str, text: FileText, *, context: bool = False) -> SourceEvents:
        """Return the messages in a text; only the failures, unless their surroundings are requested (`context`)."""
        if text.data is None:
            return self.reader.read_one(path, context=context, at=where(path))
        data = text.data
        if not context and not self._failures.find(data, 0, len(data)):
            read = SourceEvents(Source(name=path, size=len(data)))
            if self._endings.find(data, max(0, len(data) - LAST_WORDS), len(data)):
                read.last = data[-_END:]
                read.events += self.reader.recogniser.last_words(read.last, path, len(data))
            return read
        return self.reader.read_one(path, data, context=context)


def _edges(file: LogFile, text: FileText, read: SourceEvents) -> tuple[bytes, bytes, int]:
    """Return the first and last bytes of a log, as far as available, and its size; 0 if it is too large to be unpacked."""
    if text.data is not None:
        return text.data, text.data, len(text.data)
    return (read_first(file), read_end(file), file.size) if text.as_it_lies else (b"", read.last, 0)


def _texts(stream: Sequence[JobFile]) -> Iterator[tuple[JobFile, FileText]]:
    """Yield the pieces of a log with their texts; a line cut by rotation is kept whole in the piece in which it begins."""
    waiting: list[tuple[JobFile, FileText]] = []
    for piece in stream:
        text = read_text(piece.file) if piece.text is None else FileText(piece.text, piece.file.problem)
        if waiting and text.data:
            first, cut = waiting[0]
            begun = unfinished_line(cut.data or b"")
            line, rest = finish_line(begun, text.data)
            waiting[0] = first, FileText((cut.data or b"").removesuffix(begun) + line, cut.problem)
            text = FileText(rest, text.problem)
        waiting.append((piece, text))
        while waiting and (text.data is None or not unfinished_line(waiting[0][1].data or b"")):
            yield waiting.pop(0)
    yield from waiting


def outcome_of(number: int, files: tuple[ReadFile, ...], tree: LexiconNode) -> AttemptOutcome:
    """Return the combined outcome of the texts of an attempt."""
    reads = [file.read for file in files]
    judged = decide(_own(files), reads, tree)
    incidents, decided = judged.incidents, judged.verdict
    error = None
    if "log.last_error" in judged.facts:
        error = str(judged.facts["log.last_error"]) if decided.memory_failure == "no" else None
    elif incidents and decided.memory_failure == "no" and not incidents[0].kind.is_memory:
        error = incidents[0].root.text
    elif decided.reason == "consequence":
        if incidents[0].root.signature in _ORDERS or all(file.problem is None for file in files):
            # All logs of the job are available, so if they only mention a failure elsewhere or an order to stop, nothing else happened.
            decided = Verdict(memory_failure="no", kind=Kind.NONE, certainty=Certainty.LIKELY, reason="other-error")
    return AttemptOutcome(number=number, verdict=decided, reads=files, incidents=incidents, error=error)


def _own(files: Sequence[ReadFile]) -> list[Event]:
    """Return the messages, without those in a copy that the process files also contain; each with the rank given by its path."""
    shown = {event.signature for file in files if not file.file.is_copy for event in file.read.events if event.is_failure}
    per_host = 1 + max((file.file.local_rank for file in files if file.file.local_rank is not None), default=0)
    return [
        _by_its_process(event, file.file, per_host)
        for file in files
        for event in file.read.events
        if not (file.file.is_copy and event.is_failure and event.signature in shown)
    ]


def _by_its_process(event: Event, file: JobFile, per_host: int) -> Event:
    """Return a message with the rank given by its file; a rank in the message itself is used if the file gives none.

    What a program calls a rank may count another thing: the shards of a tensor, the cards of a host.
    """
    if file.rank is not None and not file.is_copy:
        return event if event.rank == file.rank else replace(event, rank=file.rank)
    foreign = file.local_rank is not None and event.rank is not None and event.rank % per_host != file.local_rank
    return replace(event, rank=None) if foreign and not file.is_copy else event
