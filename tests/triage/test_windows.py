"""Of which time jobs count, and how long their rows are kept."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from pathlib import Path

import pytest

from oomdoctor.api.fleet.show import show_fleet, show_group
from oomdoctor.api.fleet.sums import sum_up
from oomdoctor.api.fleet.triage import triage
from oomdoctor.errors import UsageError
from oomdoctor.report.triage.exposition import exposition
from oomdoctor.triage.store.expiry import expire
from oomdoctor.triage.store.export import write_rows
from oomdoctor.triage.store.parts import Parts
from oomdoctor.triage.window import ALL, TimeWindow, span_of, window_of

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is free.\n"
NOW = float(calendar.timegm((2025, 6, 5, 12, 0, 0)))


def at(*when: int) -> int:
    return calendar.timegm((*when, *(0,) * (6 - len(when))))


ASKED: dict[str, tuple[tuple[str | None, str | None, str | None], TimeWindow]] = {
    "nothing": ((None, None, None), ALL),
    "a span before now": (("24h", None, None), TimeWindow(at(2025, 6, 4, 12))),
    "days before now": (("7d", None, None), TimeWindow(at(2025, 5, 29, 12))),
    "a span that ended before now": (("2d", "1d", None), TimeWindow(at(2025, 6, 3, 12), at(2025, 6, 4, 12))),
    "since a day": (("2025-06-04", None, None), TimeWindow(at(2025, 6, 4))),
    "since a time": (("2025-06-04T10:30", None, None), TimeWindow(at(2025, 6, 4, 10, 30))),
    "since a time in a zone": (("2025-06-04T10:30+08:00", None, None), TimeWindow(at(2025, 6, 4, 2, 30))),
    "until a day": ((None, "2025-06-04", None), TimeWindow(None, at(2025, 6, 4))),
    "one day": ((None, None, "2025-06-04"), TimeWindow(at(2025, 6, 4), at(2025, 6, 5))),
}
REFUSED: dict[str, tuple[str | None, str | None, str | None]] = {
    "no time": ("yesterday", None, None),
    "an empty span": ("0h", None, None),
    "a day that does not exist": (None, None, "2025-06-31"),
    "a time as a day": (None, None, "2025-06-04T10:30"),
    "a day and a stretch": ("24h", None, "2025-06-04"),
    "an end before the beginning": ("1d", "2d", None),
}


@pytest.mark.parametrize(("asked", "window"), ASKED.values(), ids=list(ASKED))
def test_windows_as_they_are_asked_for(asked: tuple[str | None, str | None, str | None], window: TimeWindow) -> None:
    assert window_of(*asked, NOW) == window


@pytest.mark.parametrize("asked", REFUSED.values(), ids=list(REFUSED))
def test_what_is_no_window_is_refused(asked: tuple[str | None, str | None, str | None]) -> None:
    with pytest.raises(UsageError):
        window_of(*asked, NOW)


@pytest.mark.parametrize("text", ["90", "d", "-3d", "1y", ""])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--keep"):
        span_of(text, "--keep")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Keep a store of three days: a failure on each of the first two, and after the repair a job that went well."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for day, end in ((3, OOM.format(size="3.00")), (4, OOM.format(size="30.00")), (5, "Training completed.\n")):
        (logs / f"fit-77000{day}.out").write_text(f"2025-06-0{day}T01:02:03Z INFO step 10\n{end}")
    triage([str(logs)], redact=str, store=str(tmp_path / "store"))
    return str(tmp_path / "store")


COUNTED: dict[str, tuple[TimeWindow, tuple[int, int]]] = {
    "of all time": (ALL, (3, 2)),
    "since the first failure": (TimeWindow(at(2025, 6, 3, 1, 2, 3)), (3, 2)),
    "since the second failure": (TimeWindow(at(2025, 6, 4)), (2, 1)),
    "since the repair": (TimeWindow(at(2025, 6, 5)), (1, 0)),
    "of the first day": (TimeWindow(at(2025, 6, 3), at(2025, 6, 4)), (1, 1)),
    "of a day without jobs": (TimeWindow(at(2025, 6, 6), at(2025, 6, 7)), (0, 0)),
}


@pytest.mark.parametrize(("window", "counted"), COUNTED.values(), ids=list(COUNTED))
def test_the_jobs_of_a_window_count_everywhere(store: str, tmp_path: Path, window: TimeWindow, counted: tuple[int, int]) -> None:
    jobs, failed = counted
    screen = triage([str(tmp_path / "logs")], redact=str, store=store, window=window)
    shown, sums = show_fleet(store, window=window), sum_up(store, window)
    write_rows(screen.folder, str(tmp_path / "rows.jsonl"), window)
    assert {(fleet.jobs, fleet.failed) for fleet in (screen.fleet, shown.fleet, sums.fleet)} == {counted}
    assert len(shown.groups) == len(sums.fleet.groups) == failed
    assert f'oomdoctor_jobs{{memory_failure="yes"}} {failed}\n' in exposition(sums)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == jobs


def test_a_group_has_the_number_that_the_screen_of_its_time_gives_it(store: str) -> None:
    assert [show_group(store, 1, window=TimeWindow(at(2025, 6, day), at(2025, 6, day + 1))).jobs[0].native for day in (3, 4)] == [
        "770003",
        "770004",
    ]


def test_what_is_looked_at_leaves_what_is_known_of_all_groups(store: str, tmp_path: Path) -> None:
    seen = triage([str(tmp_path / "logs")], redact=str, store=store, window=TimeWindow(at(2025, 6, 5)))
    again = triage([str(tmp_path / "logs")], redact=str, store=store)
    assert len(seen.known.groups) == 2
    assert again.known.news == []


def natives(store: str) -> list[str]:
    return sorted(row.native for row in Parts(f"{store}/parts").rows())


EXPIRED: dict[str, tuple[Callable[[str], None], list[str]]] = {
    "none that is young enough": (lambda store: expire(Parts(f"{store}/parts"), at(2025, 6, 3)), ["770003", "770004", "770005"]),
    "those that ended before": (lambda store: expire(Parts(f"{store}/parts"), at(2025, 6, 5)), ["770005"]),
    "all": (lambda store: expire(Parts(f"{store}/parts"), at(2025, 6, 6)), []),
}


@pytest.mark.parametrize(("dropped", "left"), EXPIRED.values(), ids=list(EXPIRED))
def test_old_rows_are_dropped(store: str, dropped: Callable[[str], None], left: list[str]) -> None:
    dropped(store)
    assert natives(store) == left


def test_the_logs_of_dropped_rows_are_not_read_again(store: str, tmp_path: Path) -> None:
    first = triage([str(tmp_path / "logs")], redact=str, store=store, keep=86_400)
    assert (first.fleet.jobs, natives(store)) == (0, [])
    (tmp_path / "logs" / "fit-770009.out").write_text("step 10\n")
    again = triage([str(tmp_path / "logs")], redact=str, store=store, keep=86_400)
    assert (again.read, natives(store)) == (1, ["770009"])
