"""Slurm records: the lines of `sacct --parsable2` (Slurm doc/man/man1/sacct.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from oomdoctor.triage.scheduler.record import JobRecord, seconds

_GPUS = re.compile(r"gres/gpu(?::[^=,]+)?=(\d{1,6})")
OUT_OF_MEMORY = "OUT_OF_MEMORY"
_SIGNALS = 65
_NO_NODES = frozenset({"", "none assigned", "none", "(null)", "unknown", "n/a"})
_MOST_NODES = 4096


def read_sacct(lines: Iterable[str]) -> Iterator[JobRecord]:
    """Yield the jobs in a table whose first line names the fields; the lines of job steps are ignored."""
    rows = iter(lines)
    names = next(rows, "").rstrip("\n").split("|")
    for row in rows:
        told = dict(zip(names, row.rstrip("\n").split("|")))
        job = told.get("JobID") or told.get("JobIDRaw", "")
        if job and "." not in job:
            yield _record(job, told)


def _record(job: str, told: Mapping[str, str]) -> JobRecord:
    state = told.get("State", "").split(" ")[0] or None  # `CANCELLED by 1000`
    return JobRecord(
        source="sacct",
        job=job,
        name=told.get("JobName") or None,
        user=told.get("User") or None,
        account=told.get("Account") or None,
        partition=told.get("Partition") or None,
        state=state,
        exit_code=_exit_code(told.get("ExitCode", "")),
        submitted=seconds(told.get("Submit")),
        started=seconds(told.get("Start")),
        ended=seconds(told.get("End")),
        nodes=tuple(node_names(told.get("NodeList", ""))),
        gpus=gpus_of(told.get("AllocTRES", "")),
        out_of_memory=state == OUT_OF_MEMORY,
    )


def _exit_code(text: str) -> int | None:
    """Return the status in `code:signal`; Slurm writes 0:125 for a job that ran out of memory."""
    code, _, signal = text.partition(":")
    return exit_status(int(code), int(signal) if signal.isdigit() else 0) if code.isdigit() else None


def exit_status(code: int, signal: int) -> int:
    """Return the status as seen by a shell: 128 plus the signal number if a signal ended the job."""
    return 128 + signal if 0 < signal < _SIGNALS else code or signal


def gpus_of(resources: str) -> int | None:
    """Return the number of GPUs in a list of resources: `cpu=8,gres/gpu:h100=8`."""
    match = _GPUS.search(resources)
    return int(match[1]) if match else None


def node_names(listed: str) -> Iterator[str]:
    """Yield the nodes in a Slurm node list: `gpu[01-03,7],login1`; a job without nodes has words there."""
    if listed.strip().lower() in _NO_NODES:
        return
    for part in re.findall(r"[^,\[\]]+(?:\[[^\]]*\])?", listed):
        head, _, ranges = part.partition("[")
        if not ranges:
            yield head
            continue
        for piece in ranges.rstrip("]").split(","):
            first, _, last = piece.partition("-")
            if first.isdigit() and (last or first).isdigit():
                until = min(int(last or first), int(first) + _MOST_NODES)
                yield from (f"{head}{number:0{len(first)}d}" for number in range(int(first), until + 1))
