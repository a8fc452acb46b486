"""What the recorder writes: rings that record/ring.py reads, whole files, and no more than the folder may take."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path

import pytest

from oomdoctor.record.evidence_place import RANKS
from oomdoctor.record.injected.counts import NAMES, CounterRing
from oomdoctor.record.injected.guard import GAPS, guarded, note
from oomdoctor.record.injected.place import RankFiles
from oomdoctor.record.injected.stacks import holders_of, stack_of_request
from oomdoctor.record.read_folder import read_evidence
from oomdoctor.record.ring import read_ring


def record(number: int) -> list[float]:
    return [float(number), *(math.nan for _ in NAMES[1:])]


@pytest.mark.parametrize(
    ("world_size", "count", "kept"),
    [
        pytest.param(None, 0, 0, id="nothing yet"),
        pytest.param(8, 5, 5, id="not full"),
        pytest.param(8, 4000, 3600, id="an hour is kept"),
        pytest.param(2000, 300, 120, id="of a large job less, as all rings lie in one folder"),
    ],
)
def test_a_ring_is_read_as_it_was_written(tmp_path: Path, world_size: int | None, count: int, kept: int) -> None:
    path = tmp_path / "ring"
    ring = CounterRing(str(path), 7, 3, world_size)
    for number in range(count):
        ring.write(record(number))
    found = read_ring(path.read_bytes())
    assert found is not None and (found.names, found.written) == (NAMES, count)
    assert found.column("t") == tuple(range(count - kept, count)) and set(found.column("step")) <= {None}


def test_a_record_that_was_not_counted_is_not_read(tmp_path: Path) -> None:
    """The process was killed between the two."""
    path = tmp_path / "ring"
    ring = CounterRing(str(path), 7, None, None)
    ring.write(record(1))
    before = path.read_bytes()
    ring.write(record(2))
    cut = bytearray(path.read_bytes())
    count_at = 24 + int.from_bytes(cut[8:12], "little")
    cut[count_at : count_at + 8] = before[count_at : count_at + 8]
    found = read_ring(bytes(cut))
    assert found is not None and found.column("t") == (1.0,)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RankFiles:
    monkeypatch.setenv("RANK", "3")
    (tmp_path / "ranks").mkdir()
    del GAPS[:]
    return RankFiles(str(tmp_path), 1000)


def test_snapshots_stay_within_what_the_folder_may_take(files: RankFiles, tmp_path: Path) -> None:
    files.write_pickle("oom-1.pickle", b"a" * 600)
    files.write_pickle("oom-2.pickle", b"b" * 600)
    assert [path.name.split(".")[2] for path in (tmp_path / "ranks").iterdir()] == ["oom-1"]
    assert [gap["what"] for gap in GAPS] == ["oom-2.pickle"]
    files.write_pickle("oom-1.pickle", b"c" * 700)  # it takes the place of the first
    assert b"c" * 700 in next((tmp_path / "ranks").iterdir()).read_bytes()


def test_nothing_half_is_left(files: RankFiles, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        files.write_pickle("oom-1.pickle", threading.Lock())
    assert list((tmp_path / "ranks").iterdir()) == []


@pytest.mark.parametrize("value", [{"text": "\ud800 cut"}, {"text": "内存"}, {"thing": object}])
def test_anything_can_be_written_down(files: RankFiles, value: dict[str, object]) -> None:
    files.write_json("exception.json", value)
    assert list(json.loads(Path(files.path("exception.json")).read_text())) == list(value)


def test_gaps_are_said_once_and_not_without_end() -> None:
    del GAPS[:]
    for number in range(100):
        note("counters", f"reason {number // 2}")
    assert [gap["why"] for gap in GAPS] == [f"reason {number}" for number in range(20)]
    del GAPS[:]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_not_ours_passes(error: type[BaseException]) -> None:
    @guarded("test")
    def fails() -> None:
        raise error

    with pytest.raises(error):
        fails()


def test_a_thread_without_frames_is_told_by_the_main_thread() -> None:
    """Autograd's threads are none of Python's; the observer is their only frame."""
    stack, thread = stack_of_request()
    assert stack[0].endswith(":test_a_thread_without_frames_is_told_by_the_main_thread") and thread == threading.current_thread().name


def frame(file: str, line: int) -> dict[str, object]:
    return {"filename": file, "line": line, "name": "f"}


LIBRARY = frame("/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", 5)


def block(size: int, *frames: dict[str, object], state: str = "active_allocated") -> dict[str, object]:
    return {"size": size + 12, "requested_size": size, "state": state, "frames": list(frames)}


def test_holders_are_summed_by_the_line_of_the_program() -> None:
    own, other = frame("/home/a/train.py", 7), frame("/home/a/model.py", 9)
    blocks = [
        block(10, LIBRARY, own),
        block(30, own, other),
        block(90, LIBRARY),
        block(5, other, state="active_awaiting_free"),
        block(500, own, state="inactive"),
        block(700),
    ]
    assert holders_of({"segments": [{"blocks": blocks[:3]}, {"blocks": blocks[3:]}]}) == [
        {"site": f"{LIBRARY['filename']}:5:f", "bytes": 90, "blocks": 1},
        {"site": "/home/a/train.py:7:f", "bytes": 40, "blocks": 2},
        {"site": "/home/a/model.py:9:f", "bytes": 5, "blocks": 1},
    ]


def test_what_other_programs_dumped_is_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / RANKS).mkdir()
    for name in ("snapshot_7.pickle", "tensorflow_GPU_0_bfc.1764", "rank-0.pid-7.oom-1.pickle", "notes.txt"):
        (tmp_path / RANKS / name).write_bytes(b"\x80\x04.")
    evidence = read_evidence(str(tmp_path))
    assert [(Path(gap.what).name, gap.how) for gap in evidence.gaps] == [
        ("snapshot_7.pickle", "oomdoctor snapshot snapshot_7.pickle"), ("tensorflow_GPU_0_bfc.1764", None),
    ]  # fmt: skip
    assert [rank.pid for rank in evidence.ranks] == [7]
