"""Who of a launcher's tasks failed first, so that there is one report and a line from each of the others.

Each task has a wrapper of its own. They share a folder, in which the first that failed leaves its name. Where nodes share no folder, each
node has its own.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode, encode

from oomdoctor.record.evidence_place import create

FIRST = "first.json"
_FOLDER = re.compile(r"rank-(\d{1,7})(?:-\d{1,4})?$")
_EVERY = 0.1
_MOST_BYTES = 1 << 16


class FirstFailure(Struct, frozen=True, kw_only=True):
    """first.json in the folder of a job."""

    rank: int
    folder: str
    """The name of its evidence in the folder of the job."""


def claim(job: str, me: FirstFailure) -> FirstFailure:
    """Say that a task failed first, unless another one said so before; return who it was. Where nothing can be written, it is this one."""
    try:
        create(os.path.join(job, FIRST), encode(me))
    except FileExistsError:
        return read_first(job) or me
    except OSError:
        return me
    return me


def read_first(job: str) -> FirstFailure | None:
    """Return who failed first, as far as is known."""
    with suppress(OSError, DecodeError, ValidationError), open(os.path.join(job, FIRST), "rb") as file:
        return decode(file.read(_MOST_BYTES), type=FirstFailure)
    return None


def wait_for_first(job: str, seconds: float) -> FirstFailure | None:
    """Return who failed first, waiting so long for somebody to say so."""
    until = time.monotonic() + seconds
    while (first := read_first(job)) is None and time.monotonic() < until:
        time.sleep(_EVERY)
    return first


def decisive_task(job: str) -> str | None:
    """Return the evidence of the task that a report of a job is about: the first that failed, else the lowest rank.

    None for folders that are no job's.
    """
    first = read_first(job)
    if first is not None and _FOLDER.match(first.folder) and os.path.isdir(os.path.join(job, first.folder)):
        return os.path.join(job, first.folder)
    try:
        tasks = sorted((int(match[1]), name) for name in os.listdir(job) if (match := _FOLDER.match(name)) is not None)
    except OSError:
        return None
    return os.path.join(job, tasks[0][1]) if tasks and os.path.basename(os.path.abspath(job)).startswith("job-") else None
