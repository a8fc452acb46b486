"""What is drawn is bounded and adds up, and places are shown by the part that tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from snapshots.made_snapshots import LAYER, MIB, Program, fragmented, pickled, training

from oomdoctor.api.runs.snapshot import snapshot
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.picture.memory_map import FREE
from oomdoctor.snapshots.places import short_place


def device_of(tmp_path: Path, program: Program) -> DeviceExplanation:
    (tmp_path / "made.pickle").write_bytes(pickled(program))
    return snapshot(tmp_path / "made.pickle").files[0].devices[0]


def _crowded() -> Program:
    program = Program()
    segment = program.reserve(12000 * MIB)
    for number in range(6000):
        program.ask(MIB, f"/home/ann/app/part{number % 50}.py:{number % 97}:ask", *LAYER, at=segment + number * 2 * MIB)
    for _ in range(80):
        program.ask(3 * MIB, *LAYER)
    return program


def test_a_picture_is_bounded_whatever_the_trace(tmp_path: Path) -> None:
    device = device_of(tmp_path, _crowded())
    assert (len(device.course.positions), len(device.course.owners)) == (400, 10)
    assert (len(device.map.segments), device.map.left_out, device.map.left_out_bytes) == (48, 33, 33 * 3 * MIB)
    assert sum(len(segment.pieces) for segment in device.map.segments) <= 2000


@pytest.mark.parametrize("program", [pytest.param(training(), id="steps"), pytest.param(fragmented(), id="free pieces")])
def test_a_picture_adds_up(tmp_path: Path, program: Program) -> None:
    device = device_of(tmp_path, program)
    assert max(device.course.live) == device.peak.requested
    assert all(sum(sizes) <= live for live, *sizes in zip(device.course.live, *(owner.sizes for owner in device.course.owners)))
    for segment in device.map.segments:
        assert sum(piece.size for piece in segment.pieces) == segment.size
    held = sum(piece.size for segment in device.map.segments for piece in segment.pieces if piece.owner != FREE)
    assert held == sum(holder.size for holder in device.holders)


@pytest.mark.parametrize(("place", "shown"), [
    pytest.param("/home/ann/fit.py:3:main", "fit.py:3:main", id="a home"),
    pytest.param("/home/ann/work/app/fit.py:3:main", "app/fit.py:3:main", id="a folder of a project"),
    pytest.param("C:\\Users\\Ann\\fit.py:3:main", "fit.py:3:main", id="a home of Windows"),
    pytest.param("/root/fit.py:3:main", "fit.py:3:main", id="the home of root"),
    pytest.param("/opt/env/lib/python3.12/site-packages/torch/optim/adamw.py:9:step", "torch/optim/adamw.py:9:step", id="a library"),
    pytest.param("/tmp/ipykernel_41/7.py:3:<module>", "notebook:3:<module>", id="a notebook"),
    pytest.param("<string>:1:<module>", "<string>:1:<module>", id="no file"),
    pytest.param("fit.py:3:main", "fit.py:3:main", id="a name alone"),
])  # fmt: skip
def test_places_show_the_part_that_tells(place: str, shown: str) -> None:
    assert short_place(place) == shown
