"""The folder of a run is made for its owner alone, and never in one that somebody else made."""

from __future__ import annotations

import os
import stat
import subprocess
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


@pytest.mark.skipif(sys.platform == "win32", reason="no sh")
@pytest.mark.parametrize("status", [pytest.param(3, id="a run that failed"), pytest.param(0, id="one that went well")])
def test_a_named_folder_that_cannot_be_made_is_told_at_the_end(tmp_path: Path, status: int) -> None:
    (tmp_path / "out").write_text("")
    watched = [sys.executable, "-m", "oomdoctor", "run", "--out", "out", "--", "sh", "-c", f"exit {status}"]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(watched, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status
    assert "nothing was recorded: evidence folder out: File exists" in done.stderr
