"""A triage in shards, each a process of its own: together they come to what one run comes to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import to_builtins

from oomdoctor.api.fleet.merge import merge
from oomdoctor.api.fleet.triage import triage
from oomdoctor.cli.fleet.triage import triage as command
from oomdoctor.errors import UsageError
from oomdoctor.triage.store.lock import alone
from oomdoctor.triage.store.parts import Parts

OOM = "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n"
WELL = "step 10 loss 2.1\nTraining completed.\n"
RECORDS = "JobID|JobName|User|State|ExitCode\n771003|sft|u7|OUT_OF_MEMORY|0:125\n771004|sft|u7|COMPLETED|0:0\n"
SHARDS = 3


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(30):
        folder = tmp_path / "logs" / f"u{number % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"sft-{771000 + number}.out").write_text(WELL)
        (folder / f"sft-{771000 + number}.err").write_text(OOM if number % 5 == 0 else "")
    (tmp_path / "sacct.psv").write_text(RECORDS)
    return tmp_path / "logs"


def rows(store: Path) -> list[object]:
    """The rows of a store, less when they were made."""
    return [{**to_builtins(row), "scanned_at": 0} for row in sorted(Parts(str(store / "parts")).rows(), key=lambda row: row.job)]


def run_shards(logs: Path, stores: list[Path]) -> None:
    """Run all shards at once, each as a user runs it."""
    records = logs.parent / "sacct.psv"
    commands = [
        [sys.executable, "-m", "oomdoctor", "triage", str(logs), "--records", str(records), "--store", str(store), "--shard", f"{number}/{SHARDS}"]
        for number, store in enumerate(stores)
    ]  # fmt: skip
    running = [subprocess.Popen([*command, "--jobs", "1"], stdout=subprocess.PIPE, text=True) for command in commands]
    told = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * SHARDS
    assert all("triage merge" in text for text in told)


def test_shards_at_once_in_one_store_make_the_rows_of_one_run(tmp_path: Path, logs: Path) -> None:
    triage([str(logs)], redact=str, store=str(tmp_path / "one"), records=[str(tmp_path / "sacct.psv")])
    run_shards(logs, [tmp_path / "shared"] * SHARDS)
    merged = merge([str(tmp_path / "shared")])
    assert (merged.fleet.jobs, merged.fleet.failed, merged.problems) == (30, 7, ())
    assert rows(tmp_path / "shared") == rows(tmp_path / "one")


def test_shards_with_stores_of_their_own_make_the_rows_of_one_run(tmp_path: Path, logs: Path) -> None:
    triage([str(logs)], redact=str, store=str(tmp_path / "one"), records=[str(tmp_path / "sacct.psv")])
    stores = [tmp_path / f"shard{number}" for number in range(SHARDS)]
    run_shards(logs, stores)
    merge(list(map(str, stores)), into=str(tmp_path / "all"))
    assert rows(tmp_path / "all") == rows(tmp_path / "one")


def test_a_shard_leaves_the_lists_of_another_alone(tmp_path: Path, logs: Path) -> None:
    store = str(tmp_path / "store")
    triage([str(logs)], redact=str, store=store, shard=(0, 2))
    others = tmp_path / "store/parts/01.files"
    others.write_bytes(b"")
    triage([str(logs)], redact=str, store=store, shard=(0, 2))
    assert others.exists()
    triage([str(logs)], redact=str, store=store, shard=(1, 2))
    assert not others.exists()


def test_a_shard_that_has_not_finished_is_told_of(tmp_path: Path, logs: Path) -> None:
    store = str(tmp_path / "store")
    triage([str(logs)], redact=str, store=store, shard=(0, 2))
    (tmp_path / "store/parts/01.files").write_bytes(b"")
    (problem,) = merge([store]).problems
    assert "parts not finished: 1;" in problem


@pytest.mark.parametrize("into", ["monday", "all"])
def test_stores_are_not_merged_into_one_in_which_another_triage_works(
    tmp_path: Path, logs: Path, into: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oomdoctor.triage.store.lock._PATIENCE", 0)
    triage([str(logs)], redact=str, store=str(tmp_path / "monday"))
    (tmp_path / into).mkdir(exist_ok=True)
    with alone(str(tmp_path / into / "lock")), pytest.raises(UsageError, match="another triage is running"):
        merge([str(tmp_path / "monday")], into=str(tmp_path / into))


def test_a_job_in_two_stores_counts_once_as_it_was_read_last(tmp_path: Path, logs: Path) -> None:
    triage([str(logs)], redact=str, store=str(tmp_path / "monday"))
    (logs / "u1/sft-771001.err").write_text(OOM)
    (logs / "u1/sft-771999.out").write_text(WELL)
    triage([str(logs / "u1")], redact=str, store=str(tmp_path / "tuesday"))
    merged = merge([str(tmp_path / "tuesday"), str(tmp_path / "monday"), str(tmp_path / "tuesday")], into=str(tmp_path / "all"))
    assert (merged.fleet.jobs, merged.fleet.failed) == (31, 7)


@pytest.mark.parametrize("shard", [(-1, 2), (2, 2), (0, 0), (0, 257)], ids=lambda shard: f"shard {shard[0]} of {shard[1]} is none")
def test_what_is_no_shard_is_refused(tmp_path: Path, logs: Path, shard: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="counted from 0"):
        triage([str(logs)], redact=str, store=str(tmp_path / "store"), shard=shard)


@pytest.mark.parametrize("text", ["3/3", "1", "a/b", "/", "-1/2"])
def test_a_shard_is_written_as_its_number_of_how_many(text: str) -> None:
    told = CliRunner().invoke(command, ["logs", ".", "--shard", text])
    assert told.exit_code == 2
    assert "counted from 0" in told.output


def test_what_is_no_store_is_not_merged(tmp_path: Path) -> None:
    told = CliRunner().invoke(command, ["merge", str(tmp_path)], standalone_mode=False)
    assert isinstance(told.exception, UsageError)
