"""A job: its files, told apart by attempt, with the process that wrote each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from oomdoctor.triage.line_times import LineTime
from oomdoctor.triage.log_file import LogFile

_SUBMITTED = frozenset({"slurm", "kubernetes-pod"})
"""Layouts whose families are named by where a job was submitted (placing.py)."""


class JobFile(Struct, frozen=True, kw_only=True):
    """One file of a job."""

    file: LogFile
    rank: int | None = None
    """Of the one process that writes there."""
    index: int | None = None
    """The number of its pod among those of the job: the rank where each pod runs one process."""
    local_rank: int | None = None
    node: str | None = None
    ended: LineTime | None = None
    """When its last line was written, where what holds its lines tells."""
    text: bytes | None = None
    """What is at hand of it: a member of an archive, or the lines of one job out of an export."""
    is_copy: bool = False
    """It repeats what stands in other files: a launcher's view, an error file."""

    @property
    def path(self) -> str:
        """Where it lies."""
        return self.file.path


class Attempt(Struct, frozen=True, kw_only=True):
    """One start of a job; each of `streams` is a log in pieces, the oldest first."""

    number: int
    streams: tuple[tuple[JobFile, ...], ...]


class Job(Struct, frozen=True, kw_only=True):
    """All that one job left."""

    family: str
    """The files that were looked at together (placing.py)."""
    layout: str
    native: str
    """What its scheduler or its path calls it."""
    folder: str
    """What the folders of its files have in common."""
    name: str | None = None
    user: str | None = None
    part_of: tuple[str, ...] = ()
    """What the scheduler calls the job that this is a view of, where what was read tells."""
    attempts: tuple[Attempt, ...] = ()

    @property
    def key(self) -> str:
        """Return what names this job among all."""
        return f"{self.family}\t{self.native}"

    @property
    def submitted_in(self) -> str:
        """Return where it was submitted, as far as its paths tell: the folder of Slurm's logs, the namespace of its pods; else nothing."""
        layout, _, place = self.family.partition("\t")
        return place.rpartition("/")[0] if layout in _SUBMITTED else ""

    @property
    def files(self) -> tuple[LogFile, ...]:
        """Return its files, each once."""
        pieces = (piece.file for attempt in self.attempts for stream in attempt.streams for piece in stream)
        return tuple({file.path: file for file in pieces}.values())


def as_one(jobs: Sequence[Job], earlier: Sequence[Job] = ()) -> Job:
    """Return one job of the files of some, those of its start before (`earlier`) as an attempt before the others."""
    numbers = sorted({attempt.number for job in jobs for attempt in job.attempts})
    attempts = [*_merged(earlier, None, numbers[0] - 1), *(made for number in numbers for made in _merged(jobs, number, number))]
    first = jobs[0]
    return Job(
        family=first.family, layout=first.layout, native=first.native, folder=first.folder, name=first.name, attempts=tuple(attempts)
    )


def _merged(jobs: Sequence[Job], only: int | None, number: int) -> Iterator[Attempt]:
    """Yield one attempt of all streams of some jobs, or of their attempts of one number; nothing where there are none."""
    streams = [stream for job in jobs for attempt in job.attempts if only is None or attempt.number == only for stream in attempt.streams]
    if streams:
        yield Attempt(number=number, streams=tuple(streams))
