"""Kills for memory that were counted: whose they were, as other jobs die in the same second."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from in_process import oomdoctor
from msgspec.json import encode

from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse.observer import Observer
from oomdoctor.record.evidence import CgroupCounters, CgroupSample, RunRecord, Sample, WatchedProcess
from oomdoctor.record.observations.endings import ending_events
from oomdoctor.record.read_folder import RunEvidence

KILLED, ENDED, UNSEEN = (
    WatchedProcess(pid=41, signal=9), WatchedProcess(pid=42, exit_code=1), WatchedProcess(pid=43),
)  # fmt: skip
OF_ANOTHER = "Memory cgroup out of memory: Killed process 977 (java) total-vm:145564kB, anon-rss:136064kB"
OURS = "Memory cgroup out of memory: Killed process 43 (python) total-vm:145564kB, anon-rss:136064kB"
KILL, NONE, NOT_COUNTED = "watched-machine-kill", "watched-no-kernel-kill", "watched-kill-of-unknown-sender"


def seen(run: RunRecord, samples: tuple[Sample, ...] = ()) -> dict[str, dict[str, object]]:
    """What was seen of the end of a run: the ids of the events, with their fields."""
    evidence = RunEvidence(path="", run=run, samples=samples, ranks=(), log=None, environment=None, configs=(), gaps=())
    return {event.signature: dict(event.fields) for event in ending_events(Observer(load_pack()), evidence, run)}


@pytest.mark.parametrize(("processes", "own", "of_the_machine", "kernel", "told"), [
    pytest.param((KILLED,), 1, 1, (), KILL, id="a process of the run ended by SIGKILL"),
    pytest.param((ENDED, UNSEEN), 1, 1, (), KILL, id="a worker's end was seen by its parent alone"),
    pytest.param((ENDED,), 1, 1, (), NONE, id="a group below ours is another job"),
    pytest.param((ENDED,), 0, 1, (OF_ANOTHER,), NONE, id="another job of the machine"),
    pytest.param((ENDED, UNSEEN), 0, 1, (OURS,), KILL, id="the kernel names a process that moved into another group"),
    pytest.param((KILLED, UNSEEN), 0, 1, (OF_ANOTHER,), NONE, id="the kernel names whom it killed, all of others"),
    pytest.param((KILLED,), 0, 2, (OF_ANOTHER,), NOT_COUNTED, id="the kernel names one of two"),
    pytest.param((WatchedProcess(pid=44, exit_code=137),), 1, 1, (), KILL, id="a shell passes the end of its child on"),
])  # fmt: skip
def test_a_kill_is_of_the_run_where_one_of_its_processes_may_have_been_killed(
    processes: tuple[WatchedProcess, ...], own: int, of_the_machine: int, kernel: tuple[str, ...], told: str
) -> None:
    counters = CgroupCounters(version=2, oom_kill=own)
    run = RunRecord(
        end=9.0, exit_code=1, processes=processes, counters=counters, host_oom_kills=of_the_machine, kernel=kernel, has_machine_pids=True
    )
    assert {KILL, NONE, NOT_COUNTED} & seen(run).keys() == {told}
    assert seen(run).get(KILL, {"kills": 1})["kills"] == 1


GIB = 1 << 30
UNCOUNTED = RunRecord(end=20.0, signal=9)
GONE = RunRecord()
BY_HAND = RunRecord(end=20.0, signal=9, counters=CgroupCounters(version=2, oom_kill=0), processes=(KILLED,))


def sample(at: float, *, rss: int = 6, current: int = 8, available: int = 40, psi: float | None = None) -> Sample:
    """Return a moment on a machine of 64 GiB, in a group that may have 8."""
    group = CgroupSample(current=current * GIB, limit=8 * GIB)
    return Sample(t=at, rss=rss * GIB, available=available * GIB, total=64 * GIB, cgroup=group, psi=psi)


GROUP, MACHINE = "watched-limit-near-at-the-end", "watched-machine-near-at-the-end"
FULL = {"used_bytes": 8 * GIB, "limit_bytes": 8 * GIB, "scope": "memcg"}
AFTER = sample(19.9, rss=0, current=1)


@pytest.mark.parametrize(("run", "samples", "told"), [
    pytest.param(UNCOUNTED, (sample(19, psi=41.7), AFTER), {GROUP: {**FULL, "stalled_percent": 41}}, id="a kill that nobody counted, in a full group"),
    pytest.param(GONE, (sample(19),), {GROUP: FULL}, id="the wrapper was killed with it"),
    pytest.param(GONE, (sample(19, current=4, available=1),), {MACHINE: {"available_bytes": GIB, "host_total_bytes": 64 * GIB}}, id="a machine without memory"),
    pytest.param(UNCOUNTED, (sample(19, rss=1),), None, id="files that were read fill a group without harm"),
    pytest.param(UNCOUNTED, (sample(9), AFTER), None, id="long before the end"),
    pytest.param(UNCOUNTED, (sample(19, current=5, psi=88.0),), None, id="waiting alone is no end"),
    pytest.param(BY_HAND, (sample(19),), None, id="the kernel counted none"),
    pytest.param(RunRecord(end=20.0, exit_code=1), (sample(19),), None, id="the command ended by itself"),
    pytest.param(UNCOUNTED, (), None, id="no samples"),
])  # fmt: skip
def test_what_was_full_when_a_kill_was_not_counted(run: RunRecord, samples: tuple[Sample, ...], told: dict[str, object] | None) -> None:
    full = {id: fields for id, fields in seen(run, samples).items() if id.endswith("near-at-the-end")}
    assert full == ({} if told is None else told)


@pytest.mark.parametrize(("run", "samples", "cause"), [
    pytest.param(GONE, (sample(19),), "container-memory-limit", id="the group, and nothing is left but samples"),
    pytest.param(UNCOUNTED, (sample(19),), "container-memory-limit", id="the group, and a kill"),
    pytest.param(UNCOUNTED, (sample(19, current=4, available=1),), "host-ram-exhausted", id="the machine"),
])  # fmt: skip
def test_samples_tell_what_a_kill_was_for(run: RunRecord, samples: tuple[Sample, ...], cause: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(encode(run))
    (tmp_path / "samples.jsonl").write_bytes(b"".join(encode(moment) + b"\n" for moment in samples))
    os.utime(tmp_path / "samples.jsonl", (0, 0))
    diagnosis = diagnose_evidence(str(tmp_path), load_pack())
    assert (diagnosis.findings[0].cause, diagnosis.findings[0].confidence.value) == (cause, "likely")
    assert diagnosis.case.verdict.memory_failure != "no"


@pytest.mark.parametrize(("pace", "told"), [
    pytest.param(16 << 20, r"grew until it ended.{0,200} by 9\d\d\.\d\d MiB per minute", id="it grows in every second"),
    pytest.param(0, None, id="it stays where it is"),
])  # fmt: skip
def test_what_grew_is_told_with_its_pace(pace: int, told: str | None, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(encode(GONE))
    limit = (1 << 30) + 60 * pace
    samples = [
        Sample(
            t=float(at),
            rss=(1 << 30) + at * pace,
            available=64 << 30,
            total=128 << 30,
            cgroup=CgroupSample(current=limit - (59 - at) * pace, limit=limit),
        )
        for at in range(60)
    ]
    (tmp_path / "samples.jsonl").write_bytes(b"".join(encode(moment) + b"\n" for moment in samples))
    said = " ".join(oomdoctor(["diagnose", str(tmp_path), "--lang", "en", "--full"]).stdout.split())
    assert "memory limit of the container or job" in said
    assert re.search(told, said) if told is not None else "grew" not in said
