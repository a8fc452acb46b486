"""The logs of one job -> what restarting it requires, for a scheduler or a launcher to act on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from oomdoctor import __version__
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.layout import LAYOUTS
from oomdoctor.triage.elsewhere.path_lists import STANDARD_INPUT
from oomdoctor.triage.job import Job, as_one
from oomdoctor.triage.listing import list_folders
from oomdoctor.triage.log_file import PlacedFile
from oomdoctor.triage.placing import Layouts
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.work import Redact, Worker

STARTS_AGAIN, NEEDS_A_CHANGE, NOT_READ, UNKNOWN = range(4)
"""The codes of `plain`."""
CODES = {"nvrx": 93, "job": 42}
"""The code that says: do not restart. 93 is the exit code of NVRx's ft_launcher for that (`--ft-no-restart-exit-code`); 42 is the code in
the podFailurePolicy example in the Kubernetes documentation."""
SCHEMES = (*CODES, "plain")


def restart_verdict(logs: Sequence[str], *, before: Sequence[str] = (), redact: Redact, rules: str | None = None) -> JobRow:
    """Return the row of the newest run of one job; `logs` are all of its files, or its folder; `-` is standard input.

    `before` are the logs of the previous run: a failure at the same step is then a repeat. Attempts that paths distinguish
    (torchrun, Kubernetes) are separated without it. Raise UsageError if a folder contains the logs of several jobs.
    """
    with _standard_input(logs, before) as kept:
        named = {log: kept if log == STANDARD_INPUT else log for log in (*logs, *before)}
        row = _verdict([named[log] for log in logs], [named[log] for log in before], redact, rules)
    return replace(
        row,
        files=tuple(STANDARD_INPUT if file == kept else file for file in row.files),
        first_file=STANDARD_INPUT if row.first_file == kept else row.first_file,
        unreadable=tuple(replace(file, path=STANDARD_INPUT) if file.path == kept else file for file in row.unreadable),
    )


@contextmanager
def _standard_input(*logs: Sequence[str]) -> Iterator[str]:
    """Keep standard input in a file while its text is read, if it is one of the logs; yield the name of the file."""
    with TemporaryDirectory(prefix="oomdoctor-") as folder:
        path = os.path.join(folder, "input.log")
        if any(STANDARD_INPUT in some for some in logs):
            with open(path, "wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def _verdict(logs: Sequence[str], before: Sequence[str], redact: Redact, rules: str | None) -> JobRow:
    pack = load_pack(over=rules)
    worker = Worker(pack, redact, tool=__version__, rules="")
    layouts = Layouts(list(pack.records(LAYOUTS)))
    jobs = _jobs(worker, layouts, logs)
    earlier = _jobs(worker, layouts, before) if before else []
    return worker.row(as_one(jobs, earlier), newest=True)


def exit_code(row: JobRow, scheme: str) -> int:
    """Return the code that conveys a verdict to a restart policy: one of `CODES` for `stop` and `smaller`, or one of `plain`."""
    if scheme in CODES:
        return CODES[scheme] if row.retry in ("stop", "smaller") else 0
    if row.memory_failure == "unread":
        return NOT_READ
    if row.memory_failure == "no" or row.retry in ("retry", "other-node"):
        return STARTS_AGAIN
    return NEEDS_A_CHANGE if row.retry in ("stop", "smaller", "more-memory") else UNKNOWN


def _jobs(worker: Worker, layouts: Layouts, paths: Sequence[str]) -> list[Job]:
    families: dict[str, list[PlacedFile]] = {}
    for listed in list_folders(paths):
        for family, file in layouts.place(listed):
            families.setdefault(family, []).append(file)
    jobs = [job for family, files in families.items() for job in worker.jobs(family, files)]
    if not jobs:
        raise UsageError(f"no logs in {', '.join(paths)}")
    if len(jobs) > 1 and any(map(os.path.isdir, paths)):
        raise UsageError(f"{', '.join(paths)}: the logs of {len(jobs)} jobs; specify the files of one, or use triage for all of them")
    return jobs
