"""What was counted from moment to moment: whether memory stays, climbs in steps or grows, and what the host had left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.findings.series import series_shape
from oomdoctor.record.evidence import RunRecord, Sample
from oomdoctor.record.read_folder import RankEvidence
from oomdoctor.record.ring import Ring
from oomdoctor.record.telling.prefix import PREFIX, of_rank

_SPANS = 12
"""A series is looked at in so many parts of equal length; what goes up and down within a step does not show then."""
_FELL = 0.01
"""The first fall by this share of the highest value ends the time in which a model is loaded and the first step is made."""
_ROOM = 0.2
"""A host that had this share left at its worst moment was not short of memory."""
_SHAPES = {"growth": "grew", "staircase": "rose in steps", "flat": "stayed"}
_LARGEST = 1 << 60
_LONG = 60.0
"""Seconds: what grows for less is being loaded."""


def card_lines(rank: RankEvidence) -> Iterator[str]:
    """Yield how the live memory of a process went from step to step until the last second before it was refused."""
    if rank.ring is None:
        return
    until = min((refused.time for refused in rank.ooms), default=None)
    device, rows = _fullest(rank.ring, until)
    if not rows:
        return
    floors = _floors(rows)
    # What stays from step to step tells of a leak; what was held at most, of ever longer batches.
    shape, held = series_shape(floors), floors
    if shape != "growth":
        shape, held = series_shape(_roofs(rows)), _roofs(rows)
        shape = "staircase" if shape == "growth" else shape
    if shape in _SHAPES and len(floors) >= _SPANS // 2:
        steps = [step for _, _, _, step in rows if step is not None]
        passed = f"{int(steps[-1] - steps[0])} steps" if steps and 0 <= steps[-1] - steps[0] < _LARGEST else f"{len(rows)} seconds"
        highest = max(most for _, _, most, _ in rows)
        course = f"{held[0]} bytes first, {held[-1]} last, {highest} at most"
        yield f"{of_rank(rank)}live memory of device {device} {_SHAPES[shape]} over {passed}: {course}"


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


def _spans(rows: Sequence[_Row]) -> list[Sequence[_Row]]:
    count = min(_SPANS, len(rows))
    return [rows[len(rows) * at // count : len(rows) * (at + 1) // count] for at in range(count)]


def _floors(rows: Sequence[_Row]) -> list[int]:
    return [min(row[1] for row in span) for span in _spans(rows)]


def _roofs(rows: Sequence[_Row]) -> list[int]:
    return [max(row[2] for row in span) for span in _spans(rows)]


def host_lines(samples: Sequence[Sample], run: RunRecord) -> Iterator[str]:
    """Yield what the run held of the host, in how many processes, whether that grew, and whether the host had room all the time."""
    held = [(sample.rss, sample) for sample in samples if sample.rss]
    if held:
        most, sample = max(held, key=lambda pair: pair[0])
        largest = max(sample.processes.values(), default=None)
        told = "" if largest is None else f", the largest {largest} bytes"
        yield f"{PREFIX}the run held at most {most} bytes of the host in {len(sample.processes) or 1} processes{told}"
        series = _resident(held)
        if held[-1][1].t - held[0][1].t >= _LONG and series_shape(series) == "growth":
            yield f"{PREFIX}what the run holds of the host grew to its end: {series[0]} bytes first, {series[-1]} last"
    left = _least_left(samples, run)
    if left is not None and left[0] >= _ROOM * left[1]:
        yield f"{PREFIX}the host had room all the time: {left[0]} of {left[1]} bytes at the least"


def _resident(held: Sequence[tuple[int, Sample]]) -> list[int]:
    """Return the most that was resident in each span of the second half: at first, every program grows."""
    half = [size for size, _ in held][len(held) // 2 :]
    count = min(_SPANS, len(half))
    return [max(half[len(half) * at // count : len(half) * (at + 1) // count]) for at in range(count)]


def _least_left(samples: Sequence[Sample], run: RunRecord) -> tuple[int, int] | None:
    """Return the least that the host, or its control group where that had less, had left, and what it may have in all."""
    rooms = [(sample.available, sample.total) for sample in samples if sample.available is not None and sample.total]
    groups = [sample.cgroup for sample in samples if sample.cgroup is not None]
    rooms += [(group.limit - group.current, group.limit) for group in groups if group.limit and group.current is not None]
    if run.counters is not None and run.counters.limit_bytes and run.counters.peak_bytes is not None:
        rooms.append((max(0, run.counters.limit_bytes - run.counters.peak_bytes), run.counters.limit_bytes))
    return min(rooms, key=lambda pair: pair[0] / pair[1], default=None)
