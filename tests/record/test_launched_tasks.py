"""Under a launcher there is one report, from the rank that failed first, and a line from each other one; their evidence lies in one folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from in_process import oomdoctor

from oomdoctor.record.tasks import task_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a wrapper that hands signals on by waiting for them")
ROOT = Path(__file__).parents[2]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free."
LAUNCHERS: dict[str, dict[str, str]] = {
    "srun": {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "{size}", "SLURM_PROCID": "{rank}"},
    "mpirun": {"PMIX_NAMESPACE": "prterun-node-77@1", "OMPI_COMM_WORLD_SIZE": "{size}", "OMPI_COMM_WORLD_RANK": "{rank}"},
    "torchrun": {"TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "29500", "WORLD_SIZE": "{size}", "RANK": "{rank}"},
}


def environ(place: Path, launcher: str, rank: int, size: int) -> dict[str, str]:
    told = {name: value.format(rank=rank, size=size) for name, value in LAUNCHERS[launcher].items()}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(place / "state"), **told}


def start(place: Path, launcher: str, rank: int, size: int, line: str) -> subprocess.Popen[bytes]:
    """Start a task with a log of its own, as `srun --output=%t.log` does."""
    with (place / f"{rank}.log").open("wb") as log:
        words = [sys.executable, "-m", "oomdoctor", "run", "--level", "0", "--", "sh", "-c", line]
        return subprocess.Popen(words, cwd=place, env=environ(place, launcher, rank, size), stdout=log, stderr=log)


def until(place: Path, rank: int, text: str) -> None:
    end = time.monotonic() + 60
    while text not in (place / f"{rank}.log").read_text() and time.monotonic() < end:
        time.sleep(0.05)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_first_that_failed_reports_and_the_others_say_a_line(launcher: str, tmp_path: Path) -> None:
    waits = [start(tmp_path, launcher, rank, 3, "echo ready; exec sleep 300") for rank in (0, 1)]
    for rank in (0, 1):
        until(tmp_path, rank, "ready")
    failed = start(tmp_path, launcher, 2, 3, f"echo '{OOM}' >&2; exit 1")
    assert failed.wait(60) == 1
    for task in waits:  # as a launcher does once one of its tasks has failed
        task.terminate()
    assert [task.wait(60) for task in waits] == [-15, -15]
    said = {rank: (tmp_path / f"{rank}.log").read_text() for rank in range(3)}
    assert "ran out on rank 2" in said[2]
    for rank in (0, 1):
        assert said[rank].startswith("ready\n")
        (line,) = said[rank].splitlines()[1:]
        assert line.startswith(f"oomdoctor: rank {rank}: killed by SIGTERM, after rank 2 failed")
    (job,) = (tmp_path / "state" / "oomdoctor" / "runs").iterdir()
    assert sorted(path.name for path in job.iterdir()) == ["first.json", "rank-0", "rank-1", "rank-2"]
    assert "ran out on rank 2" in oomdoctor(["diagnose", str(job)]).stdout


def test_one_that_failed_of_another_waits_for_its_report(tmp_path: Path) -> None:
    other = start(tmp_path, "srun", 0, 2, "echo 'ConnectionResetError: the other side is gone' >&2; exit 1")
    first = start(tmp_path, "srun", 1, 2, f"echo '{OOM}' >&2; exit 1")
    assert [other.wait(60), first.wait(60)] == [1, 1]
    said = [(tmp_path / f"{rank}.log").read_text() for rank in (0, 1)]
    assert "after rank 1 failed" in said[0].splitlines()[-1] and "ran out on rank 1" in said[1]


def test_tasks_that_end_well_leave_and_say_nothing(tmp_path: Path) -> None:
    tasks = [start(tmp_path, "srun", rank, 2, "sleep 0.3") for rank in (0, 1)]
    assert [task.wait(60) for task in tasks] == [0, 0]
    assert [(tmp_path / f"{rank}.log").read_text() for rank in (0, 1)] == ["", ""]
    assert list((tmp_path / "state" / "oomdoctor" / "runs").iterdir()) == []


@pytest.mark.parametrize(("environment", "rank"), [
    pytest.param({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "5"}, None, id="a batch script, which Slurm starts once"),
    pytest.param({"RANK": "0", "WORLD_SIZE": "1"}, None, id="a launcher of one process"),
    pytest.param({"RANK": "nought", "WORLD_SIZE": "2"}, None, id="a rank that is no number"),
    pytest.param({}, None, id="no launcher"),
    pytest.param({"PMI_RANK": "3", "PMI_SIZE": "4"}, 3, id="Hydra"),
    pytest.param({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}, 3, id="srun"),
])  # fmt: skip
def test_a_task_is_told_by_the_launchers_variables(environment: Mapping[str, str], rank: int | None) -> None:
    task = task_of(environment)
    assert (None if task is None else task.rank) == rank
