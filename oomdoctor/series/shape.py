"""The shape of a column: where the work begins and ends, its course (findings/courses.py), and how fast it grows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from oomdoctor.case.recorded.series import SeriesColumn, SeriesShape, Slope
from oomdoctor.findings.courses import EVEN_TREND, FEWEST, GRAIN, find_course
from oomdoctor.findings.statistics import scatter, slope, trend, windows

_PACE_WINDOWS = 32
_EMPTY = 0.25
"""What begins below this share of its highest level begins with loading."""
_GONE = 0.5
"""A fall below this share of the work's level is its end."""
_BEND = 0.15
"""So far above the straight line, as a share of the climb, the end of loading must stand out."""
_LATE = 0.02
"""The last samples: this share of all, three at least."""


class _Work(Struct, frozen=True):
    """The samples of the work."""

    places: list[int]
    levels: list[int]
    given_back: bool
    loads_on: bool
    """It climbs from empty to its last sample without a bend: it may never have come to work."""


def find_shape(column: SeriesColumn, until: float | None = None) -> SeriesShape | None:
    """Return the shape of a column up to a moment of its clock; None where there are too few samples."""
    known = [at for at, used in enumerate(column.used) if used is not None and (until is None or column.times[at] <= until)]
    work = _work(known, [column.used[at] or 0 for at in known])
    if work is None:
        return None
    levels = work.levels
    high = max(levels)
    climb = _last_climb(levels)
    body = levels[: len(levels) - _late(levels)] if climb else levels
    name, rises = find_course(body, high)
    if work.loads_on:
        name = "climb"
    pace_per_hour = _pace(work, [column.times[at] for at in work.places], 3600.0) if column.times else None
    pace_per_step = _pace(work, [column.steps[at] for at in work.places], 1.0) if column.steps else None
    grows = name == "leak"
    hours = None
    if grows and pace_per_hour is not None and pace_per_hour.middle > 0 and column.total is not None:
        hours = max(0.0, (column.total - levels[-1]) / pace_per_hour.middle)
    return SeriesShape(
        name=name,
        samples=len(levels),
        start=work.places[0],
        end=work.places[-1] + 1,
        first=round(median(levels[: max(1, len(levels) // 10)])),
        last=levels[-1],
        highest=high,
        lowest=min(levels),
        rises=rises,
        per_hour=pace_per_hour if grows else None,
        per_step=pace_per_step if grows else None,
        hours_to_full=hours,
        last_climb=climb,
        interval=_interval(column, work.places),
        given_back=work.given_back,
    )


def _work(places: Sequence[int], levels: Sequence[int]) -> _Work | None:
    """Return the samples between loading and the end; None where too few are left."""
    if len(levels) < FEWEST or max(levels) == 0:
        return None
    end = _end(levels)
    start, loads_on = _start(levels[:end])
    if end - start < FEWEST:
        return None
    return _Work(list(places[start:end]), list(levels[start:end]), end < len(levels), loads_on)


def _end(levels: Sequence[int]) -> int:
    """Return the end of the work: where the last samples are far below what was in use, the program had ended before them."""
    usual = max(median(levels), max(levels) * _GONE)
    end = len(levels)
    while end and levels[end - 1] < _GONE * usual:
        end -= 1
    # Memory that comes back goes within a sample; a saw-tooth ends low as well.
    deep = sum(level < _GONE * usual for level in levels[:end])
    return len(levels) if end == 0 or (deep > end // 4 and len(levels) - end < end // 4) else end


def _start(levels: Sequence[int]) -> tuple[int, bool]:
    """Return where loading ends, and whether it never does."""
    high = max(levels)
    if levels[0] >= _EMPTY * high:
        return 0, False
    first = next(at for at, level in enumerate(levels) if level >= _EMPTY * high)
    # A card that was idle for a while is not part of the climb.
    idle = next((at for at, level in enumerate(levels) if level - levels[0] > GRAIN * high), first)
    base, last = max(0, idle - 1), len(levels) - 1
    span, climb = last - base, levels[last] - levels[base]
    if span < FEWEST or climb <= 0:
        return first, False
    heights = [(levels[at] - levels[base]) / climb - (at - base) / span for at in range(base, last + 1)]
    bend = max(range(len(heights)), key=heights.__getitem__)
    if heights[bend] < _BEND:
        return first, trend([levels[at] for at in range(base, last + 1, max(1, span // 24))]) > EVEN_TREND
    return max(first, base + bend), False


def _late(levels: Sequence[int]) -> int:
    return max(3, int(len(levels) * _LATE))


def _last_climb(levels: Sequence[int]) -> int | None:
    """Return how far the last samples rise above all before; None where they do not, or where it had risen so before."""
    late = _late(levels)
    before, latest = levels[:-late], levels[-late:]
    if len(before) < FEWEST:
        return None
    highest = max(before)
    climb = max(latest) - highest
    tops = [max(before[at : at + late]) for at in range(0, len(before), late)]
    leaps = [after - earlier for earlier, after in zip(tops, tops[1:])]
    spread = scatter(before)
    return climb if climb > max(0.1 * highest, 4 * spread, 1.5 * max(leaps, default=0)) else None


def _pace(work: _Work, places: Sequence[float], unit: float) -> Slope | None:
    """Return how much it grows in each `unit` of its places."""
    cuts = windows(len(work.levels), _PACE_WINDOWS)
    middles = [median(places[begin:end]) for begin, end in cuts]
    pace = slope(middles, [median(work.levels[begin:end]) for begin, end in cuts])
    return None if pace is None else Slope(low=pace.low * unit, middle=pace.middle * unit, high=pace.high * unit)


def _interval(column: SeriesColumn, places: Sequence[int]) -> float | None:
    """Return the seconds between two samples."""
    times = [column.times[at] for at in places] if column.times else []
    gaps = [after - before for before, after in zip(times, times[1:])]
    return median(gaps) if gaps else None
