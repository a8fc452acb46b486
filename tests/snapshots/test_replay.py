"""The package's replay and an independent one say the same of what an allocator did."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from snapshots.made_snapshots import (
    LAYER,
    MIB,
    Program,
    filled,
    fragmented,
    leaking,
    masked,
    other_stream,
    pickled,
    survived,
    training,
)
from snapshots.replay_independent import Answer, Failed, answers, lives

from oomdoctor.api.runs.snapshot import snapshot
from oomdoctor.simulation.allocator import CachingAllocator, OutOfMemory
from oomdoctor.simulation.blocks import Block
from oomdoctor.simulation.requests import RequestLog
from oomdoctor.simulation.settings import AllocatorSettings
from oomdoctor.simulation.snapshot import pickled as saved
from oomdoctor.snapshots.read import read_pickle
from oomdoctor.snapshots.replay import live_at_each

_SIZES = (300, 4096, 900 << 10, 3 * MIB, 9 * MIB, 40 * MIB, 130 * MIB)
_SETTINGS = {
    "blocks that are split": AllocatorSettings(),
    "segments that grow": AllocatorSettings(expandable=True),
    "large blocks are not split": AllocatorSettings(unsplit_from=100 * MIB),
    "sizes are rounded up": AllocatorSettings(divisions=4),
}
_MADE: dict[str, Callable[[], Program]] = {
    "a leak": leaking,
    "fragmentation": fragmented,
    "another stream": other_stream,
    "nothing recorded of the failure": masked,
    "survived": survived,
    "a steady run": training,
    "too much live": lambda: filled(LAYER),
    "a limit": lambda: filled(LAYER, free=900),
}


def simulated(settings: AllocatorSettings, seed: int, *, entries: int = 600, keep: float = 0.4) -> CachingAllocator:
    """Return an allocator that served random requests and failed some of them."""
    allocator, chance, held = CachingAllocator(settings, 700 * MIB), random.Random(seed), list[Block]()
    while len(allocator.entries) < entries:
        if held and chance.random() < keep:
            allocator.free(held.pop(chance.randrange(len(held))))
            continue
        try:
            held.append(allocator.allocate(chance.choice(_SIZES) + chance.randrange(2000)))
        except OutOfMemory:
            for block in chance.sample(held, len(held) // 2):
                held.remove(block)
                allocator.free(block)
    return allocator


def told(tmp_path: Path, data: bytes) -> dict[int, Answer]:
    """Return what the package says."""
    file = tmp_path / "made.pickle"
    file.write_bytes(data)
    out = {}
    for device in snapshot(file).files[0].devices:
        ooms = (
            Failed(oom.position, oom.requested, oom.reserved, oom.device_free, oom.live_requested, oom.largest_free_block)
            for oom in device.ooms
        )
        out[device.index] = Answer(device.peak.position, device.peak.requested, device.peak.reserved, tuple(ooms))
    return out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", _SETTINGS)
def test_both_replays_agree_on_a_simulated_allocator(tmp_path: Path, name: str, seed: int) -> None:
    data = saved(simulated(_SETTINGS[name], seed), RequestLog(requests=()))
    assert any(answer.ooms for answer in answers(data).values())
    assert told(tmp_path, data) == answers(data)


def test_both_replays_agree_where_the_trace_begins_anywhere(tmp_path: Path) -> None:
    allocator = simulated(AllocatorSettings(), 7)
    del allocator.entries[:350]
    data = saved(allocator, RequestLog(requests=()))
    assert told(tmp_path, data) == answers(data)


@pytest.mark.parametrize("step", [pytest.param(1, id="entry by entry"), pytest.param(97, id="over many entries")])
@pytest.mark.parametrize("dropped", [pytest.param(0, id="a whole trace"), pytest.param(350, id="a trace that begins anywhere")])
def test_both_replays_agree_on_what_lives_at_each_position(dropped: int, step: int) -> None:
    allocator = simulated(AllocatorSettings(), 5)
    del allocator.entries[:dropped]
    data = saved(allocator, RequestLog(requests=()))
    device, expected = read_pickle(io.BytesIO(data), len(data)).devices[0], lives(data)[0]
    for at, live in live_at_each(device, range(0, len(device.trace) + 1, step)):
        here = {life.address: life.requested for life in expected if life.begin < at <= life.end}
        assert {address: block.requested for address, block in live.items()} == here


@pytest.mark.parametrize("seed", range(3))
def test_what_is_drawn_over_time_is_what_lives(tmp_path: Path, seed: int) -> None:
    data = saved(simulated(AllocatorSettings(), seed), RequestLog(requests=()))
    (tmp_path / "made.pickle").write_bytes(data)
    drawn, expected = snapshot(tmp_path / "made.pickle").files[0].devices[0].course, lives(data)[0]
    assert len(drawn.positions) == 400
    for number, at in enumerate(drawn.positions):
        live = sum(life.requested for life in expected if life.begin <= at < life.end)
        assert sum(owner.sizes[number] for owner in drawn.owners) == drawn.live[number] == live


@pytest.mark.parametrize("name", _MADE)
def test_both_replays_agree_on_made_programs(tmp_path: Path, name: str) -> None:
    data = pickled(_MADE[name]())
    assert told(tmp_path, data) == answers(data)


def test_both_replays_keep_devices_apart(tmp_path: Path) -> None:
    first, second = Program(device=0), training(steps=3, device=2)
    first.ask(100 * MIB, *LAYER)
    data = pickled(first, second)
    assert sorted(answers(data)) == [0, 2]
    assert told(tmp_path, data) == answers(data)
