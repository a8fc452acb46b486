"""How far a triage is: one line on a terminal, nothing elsewhere."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from oomdoctor.cli.progress import FileProgress


class Stream(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def written(monkeypatch: pytest.MonkeyPatch, calls: Sequence[tuple[float, int]], *, is_terminal: bool = True) -> str:
    """What is written where so many of 90 files are done at these seconds."""
    stream = Stream(is_terminal)
    monkeypatch.setattr("sys.stderr", stream)
    times = iter([0.0, *(second for second, _ in calls)])
    progress = FileProgress(lambda done, in_all, rate: f"{done}/{in_all} at {rate}", lambda: next(times))
    for _, done in calls:
        progress.show(done, 90)
    progress.end()
    return stream.getvalue()


def test_a_long_triage_shows_files_and_their_rate_and_takes_the_line_away(monkeypatch: pytest.MonkeyPatch) -> None:
    told = written(monkeypatch, [(2.0, 10), (4.0, 60)])
    shown = [piece for piece in told.split("\r") if piece.strip()]
    assert shown == ["10/90 at 5", "60/90 at 15"]
    assert told.endswith("\r")


@pytest.mark.parametrize(
    ("calls", "is_terminal"),
    [([(0.5, 80)], True), ([(2.0, 10), (9.0, 80)], False)],
    ids=["a triage that is done at once", "no terminal"],
)
def test_nothing_is_written(monkeypatch: pytest.MonkeyPatch, calls: Sequence[tuple[float, int]], is_terminal: bool) -> None:
    assert written(monkeypatch, calls, is_terminal=is_terminal) == ""


def test_the_line_is_not_written_more_often_than_an_eye_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, [(2.0, 10), (2.01, 11), (2.02, 12), (2.5, 40)]).count("/90") == 2
