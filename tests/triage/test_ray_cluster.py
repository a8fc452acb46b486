"""A triage on a real Ray cluster on this machine: the rows of one process, also when the node that works dies in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import to_builtins

from oomdoctor.api.fleet.triage import triage
from oomdoctor.cli.fleet.triage import triage as command
from oomdoctor.errors import UsageError
from oomdoctor.triage.engines import ray_cluster
from oomdoctor.triage.engines.part_work import Task
from oomdoctor.triage.store.parts import Parts

JOBS = 2000
OOM = "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n"
WELL = "step 10 loss 2.1\nTraining completed.\n"
NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray")
    utilities = pytest.importorskip("ray.cluster_utils")
    made = utilities.Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(JOBS):
        folder = tmp_path / "logs" / f"u{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"sft-{771000 + number}.out").write_text(WELL + (OOM if number % 25 == 0 else ""))
    return tmp_path / "logs"


def rows(folder: str) -> list[object]:
    """The rows in a folder of parts, less when they were made."""
    return [{**to_builtins(row), "scanned_at": 0} for row in sorted(Parts(folder).rows(), key=lambda row: row.job)]


def test_a_node_that_dies_in_the_middle_costs_no_row(tmp_path: Path, logs: Path, cluster: Any) -> None:
    first = cluster.add_node(**NODE)
    killed: list[int] = []

    def kill_in_the_middle(done: int, count: int) -> None:
        # All that is done so far was done on the first node, and it is at work.
        if not killed and done >= count // 3:
            killed.append(done)
            cluster.remove_node(first, allow_graceful=False)
            cluster.add_node(**NODE)

    there = triage(
        [str(logs)], redact=str, store=str(tmp_path / "there"), engine="ray", address=cluster.address, progress=kill_in_the_middle
    )
    here = triage([str(logs)], redact=str, store=str(tmp_path / "here"))
    assert killed
    assert killed[0] < JOBS
    assert (there.problems, there.fleet.jobs, there.fleet.failed) == ((), JOBS, JOBS // 25)
    assert rows(there.folder) == rows(here.folder)


def test_nodes_of_another_version_do_no_work(tmp_path: Path, cluster: Any) -> None:
    cluster.add_node(**NODE)
    task = Task(folder=str(tmp_path), lock=str(tmp_path / "lock"), redact=str, tool="0.0.1", rules_version="0.0.1")
    with pytest.raises(UsageError, match=r"but the caller has 0\.0\.1"):
        list(ray_cluster.run(task, [0], cluster.address))


def test_without_a_cluster_that_is_said(tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "ray"))
    told = CliRunner().invoke(
        command, ["logs", str(logs / "u1"), "--store", str(tmp_path / "store"), "--engine", "ray"], standalone_mode=False
    )
    assert isinstance(told.exception, UsageError)
    assert "no Ray cluster" in str(told.exception)
