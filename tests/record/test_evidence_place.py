"""The folder of a run is made for its owner alone, and never in one that somebody else made."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oomdoctor.record.evidence_place import EvidencePlace, make_place
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.injection import discard, inject
from oomdoctor.record.old_runs import MOST_DAYS, MOST_RUNS, remove_old_runs

ROOT = Path(__file__).parents[2]


def mode(place: EvidencePlace) -> int:
    assert place.path is not None
    return stat.S_IMODE(Path(place.path).stat().st_mode)


@pytest.fixture(autouse=True)
def in_a_second_that_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs lie here, and have the name of one moment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(time, "strftime", lambda _: "20260102-030405")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state" / "oomdoctor" / "runs"


@pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")
@pytest.mark.parametrize("path", [None, "out", "a/b"])
def test_nobody_else_may_read_a_new_folder(path: str | None) -> None:
    assert mode(make_place(path)) == 0o700


def test_a_run_lies_among_those_of_its_user_and_none_takes_the_place_of_another(state: Path) -> None:
    first, second = make_place(None), make_place(None)
    assert first.path is not None and second.path == f"{first.path}-2"
    assert Path(first.path).parent == state and os.listdir(".") == ["state"]
    assert str(os.getpid()) in first.path  # the nodes of a cluster share a home


def test_a_folder_that_somebody_names_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o755)
    assert make_place("out") == EvidencePlace(str(tmp_path / "out"), is_new=False)
    assert mode(make_place("out")) == 0o700


def no_folder(path: Path) -> None:
    path.write_text("")


def a_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to("elsewhere")


def open_to_others(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def open_to_the_group(path: Path) -> None:
    path.mkdir()
    path.chmod(0o770)


def with_other_files(path: Path) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("")


def of_somebody_else(path: Path) -> None:
    path.mkdir()
    os.chown(path, 65534, 65534)


@pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")
@pytest.mark.parametrize(("make", "why"), [
    pytest.param(no_folder, "not a folder", id="a file"),
    pytest.param(a_link, "not a folder", id="a link to a folder"),
    pytest.param(open_to_others, "others may write", id="a folder that everybody may write to"),
    pytest.param(open_to_the_group, "others may write", id="a folder that a group may write to"),
    pytest.param(with_other_files, "contains other files (thesis.tex)", id="a folder that holds something else"),
    pytest.param(of_somebody_else, "belongs to another user", id="a folder of somebody else",
                 marks=pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives folders away")),
])  # fmt: skip
def test_a_folder_that_must_not_be_used_is_refused_before_the_command_runs(tmp_path: Path, make: Callable[[Path], None], why: str) -> None:
    make(tmp_path / "out")
    watched = [sys.executable, "-m", "oomdoctor", "run", "--out", "out", "--", "touch", "ran"]
    done = subprocess.run(watched, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2 and not (tmp_path / "ran").exists()
    (line,) = done.stderr.splitlines()
    assert line.startswith("oomdoctor: out") or "to out" in line
    assert why in line


def test_what_is_left_on_the_path_of_interpreters_is_made_anew(tmp_path: Path) -> None:
    inside = tmp_path / "out" / "oomdoctor-inside"
    inside.mkdir(parents=True)
    (inside / "tabnanny.py").write_text("raise SystemExit('somebody else wrote this')")
    injection = inject(make_place("out").path, 0)
    assert injection is not None and not (inside / "tabnanny.py").exists() and (inside / "sitecustomize.py").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")
@pytest.mark.parametrize(("mode", "is_inside"), [
    pytest.param(0o700, True, id="a folder of the owner"),
    pytest.param(0o755, True, id="a folder that others may read"),
    pytest.param(0o1777, True, id="a folder in which nobody may move what is another's"),
    pytest.param(0o2775, False, id="a folder of a project, where its group may write"),
    pytest.param(0o777, False, id="a folder where everybody may write"),
])  # fmt: skip
def test_code_of_the_run_lies_where_nobody_can_exchange_it(mode: int, is_inside: bool, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "temporary").mkdir()
    (tmp_path / "shared").chmod(mode)
    injection = inject(make_place("shared/out").path, 0)
    assert injection is not None and injection.path.startswith(str(tmp_path / "shared" / "out")) is is_inside
    assert stat.S_IMODE(Path(injection.path).stat().st_mode) == 0o700
    discard(injection)
    assert not Path(injection.path).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")
@pytest.mark.parametrize("name", ["run.json", "samples.jsonl", "run.json.part"])
def test_a_link_is_not_written_through(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    place = make_place("out")
    assert place.path is not None
    Path(place.path, name).symlink_to(victim)
    folder = EvidenceFolder(place)
    folder.write("run.json", b"{}")
    folder.append("samples.jsonl", [b"{}"])
    assert victim.read_text() == "precious"
    assert all(
        stat.S_IMODE(path.lstat().st_mode) == 0o600 for path in Path(place.path).iterdir() if path.is_file() and not path.is_symlink()
    )


def test_a_disk_without_room_is_passed_over(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = tmp_path / "full"
    opened = os.open

    def without_room(path: str, *rest: int) -> int:
        if str(path).startswith(str(full)):
            raise OSError(28, "No space left on device")
        return opened(path, *rest)

    monkeypatch.setattr(os, "open", without_room)
    place = make_place(str(full))
    assert place.path is not None and Path(place.path).parent == state and not full.exists()
    assert place.failed == ((str(full), "No space left on device"),)


def test_only_so_many_runs_stay_for_so_long_and_nothing_else_is_taken_away(state: Path) -> None:
    state.mkdir(parents=True)
    for number in range(MOST_RUNS + 5):
        made(state / f"202601{number // 24 + 1:02d}-{number % 24:02d}0000-node-{number}", ended=True, age=number / 100)
    made(state / "20250101-000000-node-1", ended=False, age=MOST_DAYS + 1)
    made(state / "20260301-000000-node-2", ended=False, age=0.5)
    (state / "notes").mkdir()
    remove_old_runs()
    left = sorted(path.name for path in state.iterdir())
    assert len(left) == MOST_RUNS + 2 and "notes" in left and "20260301-000000-node-2" in left and "20250101-000000-node-1" not in left


def made(path: Path, *, ended: bool, age: float) -> None:
    """Leave a run that wrote its record `age` days ago."""
    path.mkdir()
    (path / "run.json").write_text('{"end": 1.0}' if ended else '{"end": null}')
    then = time.time() - age * 86400
    for written in (path / "run.json", path):
        os.utime(written, (then, then))
