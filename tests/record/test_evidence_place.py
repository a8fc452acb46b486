"""The folder of a run is made for its owner alone, and never in one that somebody else made."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path

import pytest

from oomdoctor.record.evidence_place import EvidencePlace, make_place


def mode(place: EvidencePlace) -> int:
    assert place.path is not None
    return stat.S_IMODE(Path(place.path).stat().st_mode)


@pytest.fixture(autouse=True)
def in_a_second_that_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New folders lie here, and have the name of one moment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _: "run")


@pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")
@pytest.mark.parametrize("path", [None, "out", "a/b"])
def test_nobody_else_may_read_a_new_folder(path: str | None) -> None:
    assert mode(make_place(path)) == 0o700


def test_a_folder_that_somebody_made_before_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert make_place(None) == EvidencePlace(str(tmp_path / "run-2"), is_new=True)


def test_a_folder_that_somebody_names_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert make_place("out") == EvidencePlace(str(tmp_path / "out"), is_new=False)


def test_a_file_in_its_place_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    place = make_place("out")
    assert place.path is None
    assert [path for path, _ in place.failed] == ["out"]
