"""What a job is known by beside the paths of its files: its scheduler's id, and what its logs hold.

A copy of a folder, a log that was moved, an export of a log that is also at hand, a record without a log: each is a view of a job that
may have another one. Which of them are the same shows only over all rows (same_jobs.py); here is what they are compared by.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from zlib import adler32, crc32

from msgspec import Struct

from oomdoctor.triage.job import Job
from oomdoctor.triage.placing import PLAIN
from oomdoctor.triage.row import JobRow

_HEAD = 1 << 10
_EDGE = 4 << 10
_TELLING = 4 << 10
"""Two shorter logs that state no time can be equal without being one: a job that fails at once says the same each time."""
_SHIFT, _ODD, _LARGEST = 30, 0x9E3779B97F4B, (1 << 62) - 1
_MARKED = 3
"""So many logs of a job are held against those of others."""


class TextMark(Struct, frozen=True, array_like=True, gc=False):
    """What tells a text from others."""

    head: int
    """Of its beginning: a copy that was taken while the log still grew has the same."""
    whole: int
    """Of its size, its beginning and its end."""
    size: int


class JobNames(Struct, frozen=True, array_like=True, gc=False):
    """The names of a row, as numbers."""

    own: tuple[int, ...] = ()
    """By these others refer to it."""
    of: tuple[int, ...] = ()
    """It is a view of the job that has one of these, where one alone has it."""
    same: tuple[int, ...] = ()
    """Two rows that share one of these are one job."""


def mark_of(first: bytes, last: bytes, size: int) -> TextMark | None:
    """Return the mark of a text out of its first and its last bytes; None of an empty one."""
    if not size:
        return None
    # Sums and no hashes: nobody gains by two logs that are taken for one, and each log of a fleet pays.
    whole = crc32(first[:_EDGE]) << _SHIFT ^ crc32(last[-_EDGE:]) ^ size * _ODD & _LARGEST
    return TextMark(crc32(first[:_HEAD]), whole, size)


def names_of(row: JobRow, record_name: str, marks: Sequence[tuple[TextMark, bool]], part_of: Sequence[str]) -> JobNames:
    """Return the names of a row of logs.

    `record_name` is what the scheduler calls it, `marks` those of its logs, each with whether it states its time; `part_of` are
    the names of other jobs that it says it is a view of. Jobs with a scheduler's id are the same only under the
    same id, whatever their logs hold.
    """
    marks = marks[:_MARKED]
    job = _number("job", record_name)
    return JobNames(
        own=(job, *_texts(marks)),
        of=tuple(_number("job", name) for name in part_of),
        same=tuple(_copies(row.layout, job, marks)),
    )


def names_of_exported(job: Job, marks: Sequence[tuple[TextMark, bool]]) -> JobNames:
    """Return the names of a row out of an export: it is a view of the job whose log holds the same, and one with it in other exports."""
    first = job.attempts[0].streams[0][0]
    is_named = job.native != stem_of_export(first.path)
    return JobNames(
        of=(*(_number("job", name) for name in job.part_of), *_texts(marks[:_MARKED])),
        same=(_number("export", job.layout, job.native, first.node or "", job.user or ""),) if is_named else (),
    )


def stem_of_export(path: str) -> str:
    """Return what the job in an export is called whose lines name none."""
    return os.path.basename(path).split(".")[0]


def names_of_record(job: str) -> JobNames:
    """Return the names of a row that a record alone tells of."""
    return JobNames(of=(_number("job", job),))


def _texts(marks: Sequence[tuple[TextMark, bool]]) -> tuple[int, ...]:
    return tuple(mark.whole for mark, _ in marks)


def _copies(layout: str, job: int, marks: Sequence[tuple[TextMark, bool]]) -> Iterator[int]:
    is_numbered = layout.startswith("slurm")
    for mark, tells_time in marks:
        if is_numbered:
            yield job ^ mark.head
        elif tells_time or mark.size >= _TELLING:
            yield mark.whole if layout == PLAIN else job ^ mark.whole


def _number(*parts: str) -> int:
    text = "\0".join(parts).encode("utf-8", "replace")
    return crc32(text) << _SHIFT ^ adler32(text)
