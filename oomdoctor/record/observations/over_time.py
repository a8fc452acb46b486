"""What was counted from moment to moment: whether memory stays, climbs in steps or grows, and what the host had left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.event import Event
from oomdoctor.findings.series import series_course
from oomdoctor.parse.observer import Observer
from oomdoctor.record.evidence import RunRecord, Sample
from oomdoctor.record.read_folder import RankEvidence
from oomdoctor.record.ring import Ring

_FELL = 0.01
"""The first fall by this share of the highest value ends the time in which a model is loaded and the first step is made."""
_ROOM = 0.2
"""A host that had this share left at its worst moment was not short of memory."""
_SHAPES = {"growth": "watched-memory-grew", "staircase": "watched-memory-in-steps", "flat": "watched-memory-level"}
PHASES = ("model-load", "training", "evaluation", "inference", "generation", "checkpoint-save", "checkpoint-load")
"""Phases that a program may tell and that count; other names are its own."""
_LARGEST = 1 << 60
_LONG = 10.0
"""Seconds: what grows for less is being loaded."""
_FEWEST, _FEWEST_ROWS = 24, 6
"""Samples of the host, and records of a ring: of fewer no course can be told."""


def card_events(see: Observer, rank: RankEvidence) -> Iterator[Event]:
    """Yield how the live memory of a process went from step to step until the last second before it was refused."""
    if rank.ring is None:
        return
    until = min((refused.time for refused in rank.ooms), default=None)
    device, rows = _fullest(rank.ring, until)
    if not rows:
        return
    # What lives from step to step tells of a leak; what was held at most, of ever longer batches.
    held = [live for _, live, _, _ in rows]
    shape = series_course(held)
    if shape != "growth":
        held = [most for _, _, most, _ in rows]
        shape = series_course(held)
        shape = "staircase" if shape == "growth" else shape
    if shape in _SHAPES and len(rows) >= _FEWEST_ROWS:
        steps = [step for _, _, _, step in rows if step is not None]
        is_counted = bool(steps) and 0 <= steps[-1] - steps[0] < _LARGEST
        passed = int(steps[-1] - steps[0]) if is_counted else len(rows)
        seen = {
            "rank": rank.rank,
            "series_device": device,
            "series_length": passed,
            "series_steps" if is_counted else "series_seconds": passed,
            "series_first_bytes": held[0],
            "series_last_bytes": held[-1],
            "series_highest_bytes": max(most for _, _, most, _ in rows),
        }
        yield see.event(_SHAPES[shape], seen)


_Row = tuple[float, int, int, "float | None"]
"""Time, live bytes, bytes at most, step."""


def _fullest(ring: Ring, until: float | None) -> tuple[int, list[_Row]]:
    """Return the device of which a process holds most, and its records since the first step ended."""
    columns = (ring.column(name) for name in ("t", "device", "allocated", "allocated_peak", "step"))
    devices: dict[int, list[_Row]] = {}
    for time, device, live, most, step in zip(*columns, strict=True):
        if time is None or live is None or not 0 <= live < _LARGEST or (until is not None and time > until - 1):
            continue
        number = int(device) if device is not None and 0 <= device < 1 << 16 else 0
        peak = int(most) if most is not None and live <= most < _LARGEST else int(live)
        devices.setdefault(number, []).append((time, int(live), peak, step))
    number, rows = max(devices.items(), key=lambda item: max(row[1] for row in item[1]), default=(0, []))
    return number, _after_the_start(rows)


def _after_the_start(rows: list[_Row]) -> list[_Row]:
    """Return the records from the end of the first step on: by the steps that were told, else from where memory first fell."""
    if any(step is not None for *_, step in rows):
        return [row for row in rows if row[3] is not None and row[3] >= 1]
    highest = max((row[1] for row in rows), default=0)
    fell = next((at for at in range(1, len(rows)) if rows[at - 1][1] - rows[at][1] > _FELL * highest), None)
    return rows if fell is None else rows[fell:]


def phase_events(see: Observer, rank: RankEvidence) -> Iterator[Event]:
    """Yield in which of several phases that the program told most was allocated, where the counters show it."""
    peaks = [(phase.peak, phase.name) for phase in rank.phases if phase.peak is not None and phase.name in PHASES]
    if peaks and len(rank.phases) > 1:
        most, name = max(peaks)
        yield see.event("watched-phase-peak", {"rank": rank.rank, "peak_phase": name, "peak_phase_bytes": most})


def host_events(see: Observer, samples: Sequence[Sample], run: RunRecord) -> Iterator[Event]:
    """Yield what the run held of the host, in how many processes, whether that grew, and whether the host had room all the time."""
    held = [(sample.rss, sample) for sample in samples if sample.rss]
    if held:
        most, sample = max(held, key=lambda pair: pair[0])
        largest = max(sample.processes.values(), default=None)
        processes = len(sample.processes) or 1
        yield see.event("watched-host-memory", {"run_rss_bytes": most, "run_processes": processes, "largest_process_bytes": largest})
        # At first, every program grows.
        later = held[len(held) // 2 :]
        first, last, seconds = later[0][0], later[-1][0], later[-1][1].t - later[0][1].t
        if seconds >= _LONG and len(held) >= _FEWEST and series_course([size for size, _ in later]) == "growth":
            pace = max(0, int(60 * (last - first) / seconds))
            course = {"run_rss_first_bytes": first, "run_rss_last_bytes": last, "run_rss_pace_bytes": pace}
            yield see.event("watched-host-memory-grew", course)
    left = _least_left(samples, run)
    if left is not None and left[0] >= _ROOM * left[1]:
        yield see.event("watched-host-had-room", {"host_least_bytes": left[0], "host_all_bytes": left[1]})


def _least_left(samples: Sequence[Sample], run: RunRecord) -> tuple[int, int] | None:
    """Return the least that the host, or its control group where that had less, had left, and what it may have in all."""
    rooms = [(sample.available, sample.total) for sample in samples if sample.available is not None and sample.total]
    groups = [sample.cgroup for sample in samples if sample.cgroup is not None]
    rooms += [(group.limit - group.current, group.limit) for group in groups if group.limit and group.current is not None]
    if run.counters is not None and run.counters.limit_bytes and run.counters.peak_bytes is not None:
        rooms.append((max(0, run.counters.limit_bytes - run.counters.peak_bytes), run.counters.limit_bytes))
    return min(rooms, key=lambda pair: pair[0] / pair[1], default=None)
