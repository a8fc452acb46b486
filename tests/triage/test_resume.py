"""A triage that is killed at any moment leaves whole parts: the next run makes the rows of one that nobody disturbed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from msgspec import to_builtins

from oomdoctor.api.fleet.triage import triage
from oomdoctor.errors import UsageError
from oomdoctor.triage.store.changes import digest_of
from oomdoctor.triage.store.export import write_rows
from oomdoctor.triage.store.known import read_known
from oomdoctor.triage.store.lock import alone
from oomdoctor.triage.store.parts import Parts

OOM = "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size}.00 GiB.\n"
WELL = "step 10 loss 2.1\nstep 20 loss 1.9\nTraining completed.\n"
JOBS = 90
TRIES = 10

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to a process group")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet") / "logs"
    for number in range(JOBS):
        folder = root / f"u{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"sft-{771000 + number}.out").write_text(WELL)
        (folder / f"sft-{771000 + number}.err").write_text(OOM.format(size=number % 5 + 1) if number % 4 == 0 else "")
    return root


@pytest.fixture(scope="module")
def undisturbed(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    store = tmp_path_factory.mktemp("undisturbed")
    triage([str(logs)], redact=str, store=str(store))
    return rows(store)


def rows(store: Path) -> list[object]:
    """The rows of a store, less when they were made."""
    return [{**to_builtins(row), "scanned_at": 0} for row in sorted(Parts(str(store / "parts")).rows(), key=lambda row: row.job)]


def start(logs: Path, store: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "oomdoctor", "triage", str(logs), "--store", str(store), "--jobs", "2", "-o", str(store / "rows.jsonl")]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def stop(process: subprocess.Popen[bytes], store: Path, parts: int, sign: signal.Signals, later: float = 0) -> int:
    """Send a signal to a triage and all its processes when it has written so many parts, or a little later; return its status."""
    while process.poll() is None and len(list(store.glob("parts/*.rows"))) < parts:
        time.sleep(0.002)
    time.sleep(later)
    if process.poll() is None:
        os.killpg(process.pid, sign)
    process.communicate(timeout=600)
    return process.returncode


def left_over(store: Path) -> list[str]:
    return sorted(path.name for path in store.rglob("*") if path.name.endswith((".new", ".files")))


@pytest.mark.parametrize("seed", range(20))
def test_after_a_kill_the_next_run_makes_the_rows_of_one_run(seed: int, logs: Path, undisturbed: list[object], tmp_path: Path) -> None:
    dice = Random(seed)
    stop(start(logs, tmp_path), tmp_path, dice.randrange(0, 60), signal.SIGKILL, dice.random() * 0.05)
    result = triage([str(logs)], redact=str, store=str(tmp_path))
    write_rows(result.folder, str(tmp_path / "rows.jsonl"))
    assert rows(tmp_path) == undisturbed
    assert left_over(tmp_path) == []
    assert len((tmp_path / "rows.jsonl").read_bytes().splitlines()) == JOBS


def test_what_was_done_before_a_kill_is_not_read_again(logs: Path, tmp_path: Path) -> None:
    stop(start(logs, tmp_path), tmp_path, 20, signal.SIGKILL)
    done = len(list(tmp_path.glob("parts/*.rows")))
    assert triage([str(logs)], redact=str, store=str(tmp_path)).read <= JOBS - done


def test_ctrl_c_leaves_whole_parts_and_status_130(logs: Path, undisturbed: list[object], tmp_path: Path) -> None:
    for _ in range(TRIES):
        if stop(start(logs, tmp_path), tmp_path, 10, signal.SIGINT) == 130:
            break
        shutil.rmtree(tmp_path / "parts")  # on a busy machine a triage can be done before it is told to stop
    else:
        pytest.fail("no triage was stopped before its end")
    kept = {str(row) for row in rows(tmp_path)}
    assert kept <= set(map(str, undisturbed))
    triage([str(logs)], redact=str, store=str(tmp_path))
    assert rows(tmp_path) == undisturbed


def test_the_processes_of_a_triage_end_with_the_one_that_leads(logs: Path, tmp_path: Path) -> None:
    process = start(logs, tmp_path)
    while process.poll() is None and not list(tmp_path.glob("parts/*.rows")):
        time.sleep(0.002)
    process.kill()
    process.communicate(timeout=600)  # whoever is left holds its standard error open
    triage([str(logs)], redact=str, store=str(tmp_path))


def test_a_second_triage_in_the_same_store_says_so(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oomdoctor.triage.store.lock._PATIENCE", 0)
    with alone(str(tmp_path / "lock")), pytest.raises(UsageError, match="another triage is running"):
        triage([str(logs)], redact=str, store=str(tmp_path))


def test_an_unchanged_store_is_not_read_and_says_the_same(logs: Path, tmp_path: Path) -> None:
    first = triage([str(logs)], redact=str, store=str(tmp_path))
    whole = (tmp_path / "parts/whole.json").stat()
    second = triage([str(logs)], redact=str, store=str(tmp_path))
    assert (tmp_path / "parts/whole.json").stat() == whole  # it is written anew where anything is read
    assert (second.read, second.files, second.fleet) == (0, first.files, first.fleet)


def test_the_state_that_a_listing_keeps_is_that_of_the_next_look(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "one.log").write_text("step 1\n")
    paths = [str(logs), str(tmp_path / "*.log")]
    triage(paths, redact=str, store=str(tmp_path / "store"))
    known = read_known(str(tmp_path / "store" / "parts"))
    assert known is not None and known.state.startswith(f"{digest_of(paths)} ")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names are text")
def test_a_change_shows_beside_names_that_no_text_can_hold(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.log")).write_text("step 1\n")
    (tmp_path / "sft-771003.out").write_text("step 1\n")
    before = digest_of([str(tmp_path)])
    assert digest_of([str(tmp_path)]) == before
    (tmp_path / "sft-771003.out").write_text("step 1\nstep 2\n")
    assert digest_of([str(tmp_path)]) != before


def test_a_log_that_grew_is_read_again_and_alone(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(5):
        (folder / f"sft-{771000 + number}.out").write_text(WELL)
    assert triage([str(folder)], redact=str, store=str(tmp_path / "store")).fleet.failed == 0
    with (folder / "sft-771003.out").open("a") as log:
        log.write(OOM.format(size=2))
    second = triage([str(folder)], redact=str, store=str(tmp_path / "store"))
    assert (second.read, second.fleet.failed, second.fleet.jobs) == (1, 1, 5)


def test_rows_outlive_their_logs(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(3):
        (folder / f"sft-{771000 + number}.out").write_text(OOM.format(size=number + 1))
    triage([str(folder)], redact=str, store=str(tmp_path / "store"))
    (folder / "sft-771001.out").unlink()
    assert triage([str(folder)], redact=str, store=str(tmp_path / "store")).fleet.failed == 3


def test_new_records_are_read_for_their_jobs_alone(tmp_path: Path) -> None:
    folder, records = tmp_path / "logs", tmp_path / "sacct.psv"
    folder.mkdir()
    for number in range(5):
        (folder / f"sft-{771000 + number}.out").write_text(WELL)
    told = "JobID|JobName|User|State|ExitCode\n771001|sft|u7|COMPLETED|0:0\n"
    for text, read, failed in (
        (told, 5, 0),
        (told + "771003|sft|u7|OUT_OF_MEMORY|0:125\n", 1, 1),
        (told.replace("COMPLETED|0:0", "OUT_OF_MEMORY|0:125") + "771003|sft|u7|OUT_OF_MEMORY|0:125\n", 1, 2),
    ):
        records.write_text(text)
        result = triage([str(folder)], redact=str, store=str(tmp_path / "store"), records=[str(records)])
        assert (result.read, result.fleet.failed) == (read, failed)
