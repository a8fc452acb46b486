"""What is new to a store and what came back, against what its earlier runs knew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from oomdoctor.report.triage.screen import compose
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import Fleet, summarise
from oomdoctor.triage.regressions import began_on
from oomdoctor.triage.row import Failed, JobRow
from oomdoctor.triage.store.known_groups import KnownGroup, KnownGroups, known_groups, last_run, note_groups


def fleet(days: dict[str, list[int]], healthy: int = 0) -> Fleet:
    """Return a fleet of June whose groups failed on these days; and as many healthy jobs on each day."""
    told: list[tuple[str, int, Failed]] = [(name, day, "yes") for name, of_group in days.items() for day in of_group]
    told += [("", day, "no") for day in range(1, 31) for _ in range(healthy)]
    return summarise(
        JobRow(
            job=str(number),
            native=str(number),
            layout="plain",
            memory_failure=failed,
            kind="device-oom",
            group=name,
            day=f"2025-06-{day:02d}",
        )
        for number, (name, day, failed) in enumerate(told)
    )


SEEN: dict[str, tuple[list[dict[str, list[int]]], KnownGroup]] = {
    "a group of the first run is new": ([{"a": [3, 4]}], KnownGroup(first_seen="2025-06-03", last_seen="2025-06-04", is_new=True)),
    "a group that an earlier run knew is not": ([{"a": [3]}, {"a": [3, 5]}], KnownGroup(first_seen="2025-06-03", last_seen="2025-06-05")),
    "a group of a later run is new": (
        [{"b": [3]}, {"b": [3], "a": [9]}],
        KnownGroup(first_seen="2025-06-09", last_seen="2025-06-09", is_new=True),
    ),
    "after seven days with none it came back": (
        [{"a": [3]}, {"a": [3, 11, 12]}],
        KnownGroup(first_seen="2025-06-03", last_seen="2025-06-12", came_back="2025-06-11"),
    ),
    "after six days with none it never was away": (
        [{"a": [3]}, {"a": [3, 10]}],
        KnownGroup(first_seen="2025-06-03", last_seen="2025-06-10"),
    ),
    "that it came back is told once": (
        [{"a": [3]}, {"a": [3, 11]}, {"a": [3, 11]}],
        KnownGroup(first_seen="2025-06-03", last_seen="2025-06-11"),
    ),
    "an old quiet time in logs that come late is no return": (
        [{"a": [20]}, {"a": [3, 20, 21]}],
        KnownGroup(first_seen="2025-06-03", last_seen="2025-06-21"),
    ),
}


@pytest.mark.parametrize(("runs", "told"), SEEN.values(), ids=SEEN)
def test_what_a_run_knows_of_a_group(tmp_path: Path, runs: list[dict[str, list[int]]], told: KnownGroup) -> None:
    for days in runs:
        last = note_groups(str(tmp_path), fleet(days))
    assert replace(last.groups["a"], news_of=0) == told
    assert known_groups(str(tmp_path)) == last


def test_a_broken_file_is_as_none(tmp_path: Path) -> None:
    note_groups(str(tmp_path), fleet({"a": [3]}))
    (tmp_path / "groups.json").write_bytes(b'{"groups": 7')
    assert known_groups(str(tmp_path)) == KnownGroups()
    assert note_groups(str(tmp_path), fleet({"a": [3]})).groups["a"].is_new


BEGAN: dict[str, tuple[dict[str, list[int]], str | None]] = {
    "a large group of the last quarter": ({"a": [25, 26, 27, 28, 29], "b": [1, 2, 3]}, "2025-06-25"),
    "one that was there before": ({"a": [3, 25, 26, 27, 28, 29]}, None),
    "a small one": ({"a": [25, 26], "b": [1, 2, 3]}, None),
    "a small part of all failures": ({"a": [25, 26, 27, 28, 29], "b": [1] * 100}, None),
}


@pytest.mark.parametrize(("days", "day"), BEGAN.values(), ids=BEGAN)
def test_a_regression_is_a_large_group_that_began_late(days: dict[str, list[int]], day: str | None) -> None:
    made = fleet(days, healthy=3)
    assert began_on(made, made.groups["a"]) == day


@pytest.mark.parametrize(
    ("lang", "new", "began"),
    [("en", "new", "Group 1 began only on 2025-06-25"), ("zh", "新出现", "第 1 组从 2025-06-25 才开始出现")],
)
def test_the_screen_shows_both(tmp_path: Path, lang: str, new: str, began: str) -> None:
    after = fleet({"b": [1, 2, 3], "a": [25, 26, 27, 28, 29]}, healthy=3)
    for made in (fleet({"b": [1, 2, 3]}, healthy=3), after):
        known = note_groups(str(tmp_path), made)
    shown = str(compose(after, known, Wording(lang), "0"))
    assert shown.count(f"note='{new}") == 1
    assert began in shown


def test_a_run_that_finds_nothing_new_is_the_last_one_all_the_same(tmp_path: Path) -> None:
    for _ in range(2):
        note_groups(str(tmp_path), fleet({"a": [3]}))
    os.utime(tmp_path / "groups.json", (1, 1))
    known = note_groups(str(tmp_path), fleet({"a": [3]}))
    assert known == known_groups(str(tmp_path))
    assert (last_run(str(tmp_path)) or 0) > 1
