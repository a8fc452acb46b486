"""Requests of a run through the allocator: peaks by phase, the request that fails, and the snapshot that memory_viz reads."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from oomdoctor.simulation.holders import holders
from oomdoctor.simulation.replay import replay
from oomdoctor.simulation.requests import Frame, Request, RequestLog, Site
from oomdoctor.simulation.settings import MIB, AllocatorSettings
from oomdoctor.simulation.snapshot import pickled, snapshot

SITES = (Site("parameters"), Site("aten::mm", (Frame("model", 0, "layers.0.mlp"),)), Site("optimizer"))


def two_steps(states: int) -> Iterator[Request]:
    """Weights of 30 MiB, activations of 12 and 24 MiB, and states that come with the first step."""
    yield Request("alloc", 1, 30 * MIB)
    for step in (1, 2):
        yield Request("phase", step, site=1)
        yield Request("alloc", 10 * step, 12 * MIB, 1)
        yield Request("alloc", 10 * step + 1, 24 * MIB, 1)
        yield Request("phase", step, site=2)
        yield Request("free", 10 * step + 1)
        yield Request("free", 10 * step)
        yield Request("phase", step, site=3)
        if step == 1:
            yield Request("alloc", 2, states * MIB, 2)


def log(states: int) -> RequestLog:
    return RequestLog(requests=tuple(two_steps(states)), sites=SITES)


def test_each_phase_has_its_peak() -> None:
    run, _ = replay(log(20))
    rows = [(phase.step, phase.name, phase.allocated // MIB, phase.reserved // MIB) for phase in run.phases]
    assert rows == [
        (0, "load", 30, 30),
        (1, "forward", 66, 66),
        (1, "backward", 66, 66),
        # The states fill 20 of the 24 MiB that the larger activation left.
        (1, "step", 50, 66),
        (2, "forward", 86, 90),
        (2, "backward", 86, 90),
        (2, "step", 50, 90),
    ]
    assert (run.requests, run.allocated, run.reserved, run.unused) == (6, 86 * MIB, 90 * MIB, 4 * MIB)
    assert (run.peak.name, run.peak.step) == ("forward", 2)


def test_the_request_that_fails_is_named() -> None:
    run, _ = replay(log(20), capacity=80 * MIB)
    assert run.failed is not None
    assert (run.failed.phase.name, run.failed.phase.step, run.failed.place) == ("forward", 2, "aten::mm in layers.0.mlp")
    assert (run.failed.size, run.failed.free, run.flushes) == (24 * MIB, 14 * MIB, 1)


def test_what_lives_at_the_peak_is_named() -> None:
    held = [(each.name, each.bytes // MIB, each.blocks) for each in replay(log(20))[0].holders]
    assert held == [("aten::mm", 36, 2), ("parameters", 30, 1), ("optimizer", 20, 1)]
    failed = replay(log(20), capacity=80 * MIB)[0]
    assert [(each.name, each.bytes // MIB) for each in failed.holders] == [("parameters", 30), ("optimizer", 20), ("aten::mm", 12)]


def test_the_same_part_of_every_layer_is_one_kind() -> None:
    sites = tuple(Site("aten.mm", (Frame("model", 0, f"layers.{number}.mlp"),)) for number in range(3))
    requests = tuple(Request("alloc", number, MIB, number) for number in range(3))
    assert [(each.name, each.blocks) for each in holders(RequestLog(requests=requests, sites=sites), 3)] == [("aten.mm in layers.*.mlp", 3)]


def test_a_card_with_room_refuses_nothing() -> None:
    run, _ = replay(log(20), capacity=90 * MIB)
    assert (run.failed, run.flushes) == (None, 0)


GOLDEN_ENTRIES = [
    ("segment_alloc", 12), ("alloc", 11), ("segment_alloc", 2), ("alloc", 0.5), ("free_requested", 11), ("free_completed", 11), ("alloc", 4),
]  # fmt: skip
SMALL = RequestLog(
    requests=(
        Request("alloc", 1, 11 * MIB, 0),
        Request("alloc", 2, MIB // 2, 1),
        Request("free", 1),
        Request("alloc", 3, 4 * MIB, 1),
    ),
    sites=SITES,
)


def test_a_snapshot_small_enough_to_read() -> None:
    _, allocator = replay(SMALL)
    made: Any = snapshot(allocator, SMALL)
    assert [(entry["action"], entry["size"] / MIB) for entry in made["device_traces"][0]] == GOLDEN_ENTRIES
    blocks = [[(block["state"], block["size"] / MIB) for block in segment["blocks"]] for segment in made["segments"]]
    assert blocks == [[("active_allocated", 4), ("inactive", 8)], [("active_allocated", 0.5), ("inactive", 1.5)]]
    assert made["segments"][0]["blocks"][0]["frames"] == [
        {"filename": "operation", "line": 0, "name": "aten::mm"},
        {"filename": "model", "line": 0, "name": "layers.0.mlp"},
    ]


SETTINGS = [
    pytest.param(AllocatorSettings(), id="plain"),
    pytest.param(AllocatorSettings(expandable=True), id="growing segments"),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_end_of_a_snapshot_adds_up(settings: AllocatorSettings) -> None:
    run, allocator = replay(log(20), settings)
    segments: Any = snapshot(allocator, log(20))["segments"]
    assert sum(segment["total_size"] for segment in segments) == allocator.reserved
    assert sum(segment["allocated_size"] for segment in segments) == 50 * MIB
    assert all(segment["total_size"] == sum(block["size"] for block in segment["blocks"]) for segment in segments)
    assert run.allocated == 86 * MIB


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("capacity", [pytest.param(None, id="a run that ends"), pytest.param(80 * MIB, id="a run that fails")])
def test_memory_viz_reads_it(settings: AllocatorSettings, capacity: int | None) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    run, allocator = replay(log(20), settings, capacity)
    made = pickle.loads(pickled(allocator, log(20)))
    assert f"total_reserved: {allocator.reserved / MIB:.1f}MiB" in viz.segsum(made)
    assert ("OutOfMemoryError" in viz.trace(made)) == (run.failed is not None)
    assert "Active Memory Timeline" in viz.trace_plot(made)
    assert "Allocator State History" in viz.segment_plot(made)
    assert "total_reserved" in viz.segsum(made)
    assert made["simulated_by"].startswith("oomdoctor ")
    assert "operation:0:parameters 31457280" in viz.memory(made, format_flamegraph=str)
