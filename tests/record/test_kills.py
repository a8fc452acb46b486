"""Kills for memory that were counted: whose they were, as other jobs die in the same second."""

from __future__ import annotations

import pytest

from oomdoctor.record.evidence import CgroupCounters, RunRecord, WatchedProcess
from oomdoctor.record.read_folder import RunEvidence
from oomdoctor.record.telling.endings import ending_lines

KILLED, ENDED, UNSEEN = (
    WatchedProcess(pid=41, signal=9), WatchedProcess(pid=42, exit_code=1), WatchedProcess(pid=43),
)  # fmt: skip
OF_ANOTHER = "Memory cgroup out of memory: Killed process 977 (java) total-vm:145564kB, anon-rss:136064kB"
OURS = "Memory cgroup out of memory: Killed process 43 (python) total-vm:145564kB, anon-rss:136064kB"


NOT_COUNTED = "SIGKILL ended process 41; whether the kernel did it"


@pytest.mark.parametrize(("processes", "own", "of_the_machine", "kernel", "told"), [
    pytest.param((KILLED,), 1, 1, (), "the kernel killed 1 processes", id="a process of the run ended by SIGKILL"),
    pytest.param((ENDED, UNSEEN), 1, 1, (), "the kernel killed 1 processes", id="a worker's end was seen by its parent alone"),
    pytest.param((ENDED,), 1, 1, (), "the kernel ended no process", id="a group below ours is another job"),
    pytest.param((ENDED,), 0, 1, (OF_ANOTHER,), "the kernel ended no process", id="another job of the machine"),
    pytest.param((ENDED, UNSEEN), 0, 1, (OURS,), "the kernel killed 1 processes", id="the kernel names a process that moved into another group"),
    pytest.param((KILLED, UNSEEN), 0, 1, (OF_ANOTHER,), "the kernel ended no process", id="the kernel names whom it killed, all of others"),
    pytest.param((KILLED,), 0, 2, (OF_ANOTHER,), NOT_COUNTED, id="the kernel names one of two"),
    pytest.param((WatchedProcess(pid=44, exit_code=137),), 1, 1, (), "the kernel killed 1 processes", id="a shell passes the end of its child on"),
])  # fmt: skip
def test_a_kill_is_of_the_run_where_one_of_its_processes_may_have_been_killed(
    processes: tuple[WatchedProcess, ...], own: int, of_the_machine: int, kernel: tuple[str, ...], told: str
) -> None:
    counters = CgroupCounters(version=2, oom_kill=own)
    run = RunRecord(
        end=9.0, exit_code=1, processes=processes, counters=counters, host_oom_kills=of_the_machine, kernel=kernel, has_machine_pids=True
    )
    evidence = RunEvidence(path="", run=run, samples=(), ranks=(), log=None, environment=None, configs=(), gaps=())
    lines = list(ending_lines(evidence, run))
    assert any(line.startswith(f"oomdoctor run: {told}") for line in lines)
