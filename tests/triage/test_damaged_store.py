"""A store that was damaged: what is wrong is named, the logs are read again, and no row goes without a word."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import to_builtins

from oomdoctor.api.fleet.merge import merge
from oomdoctor.api.fleet.query import query
from oomdoctor.api.fleet.triage import TriageResult, triage
from oomdoctor.cli.fleet.triage import triage as command
from oomdoctor.triage.store.parts import Parts

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
JOBS = 600


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "logs"
    folder.mkdir()
    for number in range(JOBS):
        (folder / f"slurm-{771000 + number}.out").write_text(OOM if number % 3 else "step 1 loss 2.0\nTraining completed.\n")
    return folder


@pytest.fixture(scope="module")
def whole(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("whole") / "store"
    triage([str(logs)], redact=str, store=str(store))
    return store


def rows(store: Path) -> list[object]:
    return [{**to_builtins(row), "scanned_at": 0} for row in sorted(Parts(str(store / "parts")).rows(), key=lambda row: row.job)]


def part(store: Path) -> Path:
    """A part of several families."""
    return next(path for path in sorted(store.glob("parts/*.rows")) if len(path.read_bytes().splitlines()) > 3)


def changed(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(store: Path) -> None:
        part(store).write_bytes(change(part(store).read_bytes()))

    return damage


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    return changed(lambda data: b"".join(change(data.splitlines(keepends=True))))


def flipped(at: Callable[[bytes], int]) -> Callable[[Path], None]:
    return changed(lambda data: data[: at(data)] + bytes([data[at(data)] ^ 1]) + data[at(data) + 1 :])


def same_time_and_size(store: Path) -> None:
    before = part(store).stat()
    flipped(lambda data: data.rindex(b'"native"') + 12)(store)
    os.utime(part(store), ns=(before.st_atime_ns, before.st_mtime_ns))


def of_another_number(store: Path) -> None:
    other = next(path for path in sorted(store.glob("parts/*.rows")) if path != part(store))
    shutil.copy(other, part(store))


def a_link_to_nothing(store: Path) -> None:
    path = part(store)
    path.unlink()
    path.symlink_to("nowhere")


def a_pipe(store: Path) -> None:
    path = part(store)
    path.unlink()
    os.mkfifo(path)


def all_gone(store: Path) -> None:
    for path in store.glob("parts/*.rows"):
        path.unlink()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "noise instead of it": changed(lambda _: bytes(range(200))),
    "empty": changed(lambda _: b""),
    "deleted": lambda store: part(store).unlink(),
    "all of them deleted": all_gone,
    "cut in a line": changed(lambda data: data[:-100]),
    "cut between lines": lines(lambda told: told[:-1]),
    "cut to its head": lines(lambda told: told[:1]),
    "its last end of line is gone": changed(lambda data: data[:-1]),
    "zeros to its end, after a power cut": changed(lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2)),
    "a bit of its head": flipped(lambda _: 20),
    "a bit of a checksum": flipped(lambda data: data.index(b"\n") + 2),
    "a bit of a row that leaves it JSON": flipped(lambda data: data.index(b'"native"') + 12),
    "a bit, with the size and the time of before": same_time_and_size,
    "a line taken out": lines(lambda told: [*told[:1], *told[2:]]),
    "a line twice": lines(lambda told: [*told[:2], *told[1:]]),
    "its head taken out": lines(lambda told: told[1:]),
    "its head last": lines(lambda told: [*told[1:], told[0]]),
    "text in front": changed(lambda data: b"# a note\n" + data),
    "text behind": changed(lambda data: data + b"conflict\n"),
    "ends of lines of Windows": changed(lambda data: data.replace(b"\n", b"\r\n")),
    "the file of another part": of_another_number,
    "a link to nothing": a_link_to_nothing,
    "a pipe": a_pipe,
}


def damaged(whole: Path, tmp_path: Path, damage: Callable[[Path], None]) -> Path:
    store = tmp_path / "store"
    shutil.copytree(whole, store, ignore=shutil.ignore_patterns("rows-*"))
    damage(store)
    return store


def repaired(store: Path, logs: Path) -> TriageResult:
    return triage([str(logs)], redact=str, store=str(store))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_named_and_its_logs_are_read_again(damage: str, logs: Path, whole: Path, tmp_path: Path) -> None:
    store = damaged(whole, tmp_path, DAMAGES[damage])
    result = repaired(store, logs)
    (problem,) = result.problems
    assert "the logs of these parts were read again" in problem
    assert "lost" not in problem
    assert rows(store) == rows(whole)
    assert (result.fleet.jobs, result.fleet.failed) == (JOBS, JOBS * 2 // 3)
    assert query("SELECT count(*) FROM jobs", store=str(store)).rows == [(JOBS,)]
    assert repaired(store, logs).problems == ()


@pytest.mark.parametrize("damage", DAMAGES)
def test_who_reads_a_damaged_store_is_told_so_each_time(damage: str, whole: Path, tmp_path: Path) -> None:
    store = damaged(whole, tmp_path, DAMAGES[damage])
    asked = query("SELECT count(*) FROM jobs", store=str(store))
    again = query("SELECT count(*) FROM jobs", store=str(store))
    assert asked == again
    assert "jobs are missing here" in asked.problems[0]
    for words in (["show", "1"], ["metrics"], ["warnings"], ["notify", "--for", "slack"], ["report"]):
        told = CliRunner().invoke(command, [*words, "--store", str(store)], standalone_mode=False)
        assert "jobs are missing here" in told.output or damage == "all of them deleted"
    assert "jobs are missing here" in " ".join(merge([str(store)]).problems)


def test_rows_whose_logs_are_gone_are_counted_where_they_are_lost(logs: Path, tmp_path: Path) -> None:
    here = tmp_path / "logs"
    shutil.copytree(logs, here)
    store = tmp_path / "store"
    triage([str(here)], redact=str, store=str(store))
    kept = here / "slurm-771000.out"
    cut = next(path for path in sorted(store.glob("parts/*.rows")) if b"771000" not in path.read_bytes())
    held = len(cut.read_bytes().splitlines()) - 1
    for path in set(here.iterdir()) - {kept}:
        path.unlink()
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:-1]))
    (problem,) = repaired(store, here).problems
    assert f"jobs now: {held - 1}, before: {held}, lost, because their logs are gone: 1" in problem
    assert len(rows(store)) == JOBS - 1
    assert repaired(store, here).problems == ()


@pytest.mark.parametrize("name", ["groups.json", "held.json", "parts/whole.json"])
@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b'{"groups": 7'], ids=["empty", "zeros", "cut"])
def test_damaged_notes_of_a_store_cost_no_row(name: str, damage: bytes, logs: Path, whole: Path, tmp_path: Path) -> None:
    store = damaged(whole, tmp_path, lambda _: None)
    (store / name).write_bytes(damage)
    if name != "parts/whole.json":  # which is made anew of what lies there
        told = CliRunner().invoke(command, ["metrics", "--store", str(store)], standalone_mode=False)
        assert f"{name} is damaged" in told.output
    result = repaired(store, logs)
    assert rows(store) == rows(whole)
    assert [problem.count(f"{name} is damaged") for problem in result.problems] in ([1], [])
    assert name != "groups.json" or result.problems
    assert repaired(store, logs).problems == ()


def test_a_bit_of_what_was_kept_of_the_last_run_changes_no_figure(logs: Path, whole: Path, tmp_path: Path) -> None:
    store = damaged(whole, tmp_path, lambda _: None)
    path = store / "parts/whole.json"
    path.write_bytes(path.read_bytes().replace(b'"failed":400', b'"failed":401'))
    assert repaired(store, logs).fleet.failed == 400


def test_a_damaged_table_of_sql_is_made_anew(whole: Path, tmp_path: Path) -> None:
    store = damaged(whole, tmp_path, lambda _: None)
    assert query("SELECT count(*) FROM jobs", store=str(store)).rows == [(JOBS,)]
    (table,) = store.glob("rows-*")
    table.write_bytes(table.read_bytes()[:-4096])
    assert query("SELECT count(*) FROM jobs", store=str(store)).rows == [(JOBS,)]


def test_a_store_of_an_older_form_is_made_anew_and_says_so(logs: Path, whole: Path, tmp_path: Path) -> None:
    def unsealed(store: Path) -> None:
        for path in store.glob("parts/*.rows"):
            _, *families = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b'{"listing":"","rules":"0.1.0"}\n' + b"".join(line[9:] for line in families))
        (store / "held.json").unlink()

    store = damaged(whole, tmp_path, unsealed)
    (problem,) = repaired(store, logs).problems
    assert "has a different format" in problem
    assert f"jobs now: {JOBS}, before: unknown" in problem
    assert rows(store) == rows(whole)
