"""Slurm records as JSON: `sacct --json` and `scontrol show jobs --json` (Slurm src/plugins/data_parser).

The two differ in the names of a few fields, and releases in whether a number stands alone or beside whether it is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import Decoder

from oomdoctor.triage.scheduler.record import JobRecord
from oomdoctor.triage.scheduler.sacct import OUT_OF_MEMORY, exit_status, gpus_of, node_names


class _Number(Struct):
    set: bool = True
    number: int = 0


_Told = Union[int, _Number, None]
_States = Union[str, list[str], None]


class _State(Struct):
    current: _States = None


class _Signal(Struct):
    id: _Told = None
    signal_id: _Told = None


class _Exit(Struct):
    return_code: _Told = None
    signal: Union[_Signal, None] = None


class _Array(Struct):
    job_id: _Told = None
    task_id: _Told = None


class _Times(Struct):
    submission: _Told = None
    start: _Told = None
    end: _Told = None


class _Resource(Struct):
    type: str = ""
    name: Union[str, None] = None
    count: int = 0


class _Resources(Struct):
    allocated: list[_Resource] = field(default_factory=list)


class _Job(Struct):
    job_id: int
    name: Union[str, None] = None
    user: Union[str, None] = None
    user_name: Union[str, None] = None
    account: Union[str, None] = None
    partition: Union[str, None] = None
    state: Union[_State, None] = None
    job_state: _States = None
    exit_code: Union[_Exit, int, None] = None
    array: Union[_Array, None] = None
    array_job_id: _Told = None
    array_task_id: _Told = None
    time: Union[_Times, None] = None
    submit_time: _Told = None
    start_time: _Told = None
    end_time: _Told = None
    nodes: Union[str, None] = None
    tres: Union[_Resources, None] = None
    tres_alloc_str: Union[str, None] = None


class _Jobs(Struct):
    jobs: list[_Job]


_DECODER = Decoder(_Jobs)


def read_slurm_json(text: bytes) -> Iterator[JobRecord]:
    """Yield the jobs in a Slurm object. Raise ValueError if the text is not such JSON."""
    try:
        read = _DECODER.decode(text)
    except (DecodeError, ValidationError, RecursionError) as why:
        raise ValueError(str(why)) from why
    yield from map(_record, read.jobs)


def _record(job: _Job) -> JobRecord:
    array = job.array or _Array(job.array_job_id, job.array_task_id)
    times = job.time or _Times(job.submit_time, job.start_time, job.end_time)
    states = job.state.current if job.state is not None else job.job_state
    state = states if isinstance(states, str) else next(iter(states or ()), None)
    master, task = _number(array.job_id), _number(array.task_id)
    return JobRecord(
        source="sacct",
        job=f"{master}_{task}" if master and task is not None else str(job.job_id),
        name=job.name or None,
        user=job.user or job.user_name or None,
        account=job.account or None,
        partition=job.partition or None,
        state=state,
        exit_code=_exit_code(job.exit_code),
        submitted=_number(times.submission) or None,
        started=_number(times.start) or None,
        ended=_number(times.end) or None,
        nodes=tuple(node_names(job.nodes or "")),
        gpus=_gpus(job),
        out_of_memory=state == OUT_OF_MEMORY,
    )


def _number(told: _Told) -> int | None:
    if isinstance(told, _Number):
        return told.number if told.set else None
    return told


def _exit_code(told: _Exit | int | None) -> int | None:
    if not isinstance(told, _Exit):
        return told
    signal = (_number(told.signal.id) or _number(told.signal.signal_id)) if told.signal is not None else None
    code = _number(told.return_code)
    return exit_status(code or 0, signal or 0) if code is not None or signal else None


def _gpus(job: _Job) -> int | None:
    if job.tres is None:
        return gpus_of(job.tres_alloc_str or "")
    cards = [each.count for each in job.tres.allocated if each.type == "gres" and (each.name or "") == "gpu"]
    return sum(cards) or None
