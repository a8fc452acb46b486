"""A job: its files, separated by attempt, with the process that wrote each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from oomdoctor.triage.line_times import LineTime
from oomdoctor.triage.log_file import LogFile

_SUBMITTED = frozenset({"slurm", "kubernetes-pod"})
"""Layouts whose families are named after the place a job was submitted from (placing.py)."""


class JobFile(Struct, frozen=True, kw_only=True):
    """One file of a job."""

    file: LogFile
    rank: int | None = None
    """The rank of the only process that writes there."""
    index: int | None = None
    """The index of its pod in the job: the rank if each pod runs one process."""
    local_rank: int | None = None
    node: str | None = None
    ended: LineTime | None = None
    """When its last line was written, if the container of the lines states it."""
    text: bytes | None = None
    """Text already available: a member of an archive, or the lines of one job in an export."""
    is_copy: bool = False
    """Whether it repeats the contents of other files: a launcher's view, an error file."""

    @property
    def path(self) -> str:
        """Its path."""
        return self.file.path


class Attempt(Struct, frozen=True, kw_only=True):
    """One start of a job; each of `streams` is a log in pieces, oldest first."""

    number: int
    streams: tuple[tuple[JobFile, ...], ...]


class Job(Struct, frozen=True, kw_only=True):
    """Everything left by one job."""

    family: str
    """The files that were read together (placing.py)."""
    layout: str
    native: str
    """Its ID according to the scheduler or its path."""
    folder: str
    """The common folder of its files."""
    name: str | None = None
    user: str | None = None
    part_of: tuple[str, ...] = ()
    """The scheduler's ID of the job that this is a view of, if known."""
    attempts: tuple[Attempt, ...] = ()

    @property
    def key(self) -> str:
        """Return the key that identifies this job."""
        return f"{self.family}\t{self.native}"

    @property
    def submitted_in(self) -> str:
        """Return where it was submitted, if its paths show it: the folder of Slurm's logs, the namespace of its pods; otherwise nothing."""
        layout, _, place = self.family.partition("\t")
        return place.rpartition("/")[0] if layout in _SUBMITTED else ""

    @property
    def files(self) -> tuple[LogFile, ...]:
        """Return its files, each once."""
        pieces = (piece.file for attempt in self.attempts for stream in attempt.streams for piece in stream)
        return tuple({file.path: file for file in pieces}.values())


def as_one(jobs: Sequence[Job], earlier: Sequence[Job] = ()) -> Job:
    """Merge several jobs into one; those of an earlier start (`earlier`) become an attempt before the others."""
    numbers = sorted({attempt.number for job in jobs for attempt in job.attempts})
    attempts = [*_merged(earlier, None, numbers[0] - 1), *(made for number in numbers for made in _merged(jobs, number, number))]
    first = jobs[0]
    return Job(
        family=first.family, layout=first.layout, native=first.native, folder=first.folder, name=first.name, attempts=tuple(attempts)
    )


def _merged(jobs: Sequence[Job], only: int | None, number: int) -> Iterator[Attempt]:
    """Yield one attempt with all streams of some jobs, or of their attempts with the same number; nothing if there are none."""
    streams = [stream for job in jobs for attempt in job.attempts if only is None or attempt.number == only for stream in attempt.streams]
    if streams:
        yield Attempt(number=number, streams=tuple(streams))
