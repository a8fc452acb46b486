"""The shape of a column: where the work begins and ends, and whether it stays, climbs in steps, climbs on, or goes up and down.

Everything is judged on medians of windows, so that single samples decide nothing; what is between two shapes has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median

from msgspec import Struct

from oomdoctor.case.recorded.series import SeriesColumn, SeriesShape, ShapeName, Slope
from oomdoctor.series.statistics import order, scatter, slope, trend, windows

FEWEST = 8
"""Below so many samples a shape is a guess."""
_WINDOWS = 16
_EVEN_TREND = 0.85
"""Kendall's tau from which windows rise nearly all the time."""
_IN_ORDER = 0.9
"""Of windows that differ, nearly all later ones of a staircase stand higher."""
_GRAIN = 0.005
"""Levels that differ by less of the highest are one level: contexts, libraries and handles come and go."""
_GROWTH = 0.02
"""Less than this share of the highest is no growth that fills a card."""
_EMPTY = 0.25
"""What begins below this share of its highest level begins with loading."""
_GONE = 0.5
"""A fall below this share of the work's level is its end."""
_BEND = 0.15
"""So far above the straight line, as a share of the climb, the end of loading must stand out."""
_UPS_AND_DOWNS = 0.05
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
    name, rises = _name(body, high)
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
    idle = next((at for at, level in enumerate(levels) if level - levels[0] > _GRAIN * high), first)
    base, last = max(0, idle - 1), len(levels) - 1
    span, climb = last - base, levels[last] - levels[base]
    if span < FEWEST or climb <= 0:
        return first, False
    heights = [(levels[at] - levels[base]) / climb - (at - base) / span for at in range(base, last + 1)]
    bend = max(range(len(heights)), key=heights.__getitem__)
    if heights[bend] < _BEND:
        return first, trend([levels[at] for at in range(base, last + 1, max(1, span // 24))]) > _EVEN_TREND
    return max(first, base + bend), False


def _name(levels: Sequence[int], high: int) -> tuple[ShapeName, int]:
    """Return the shape of the work and how often it rose to a new level."""
    cuts = windows(len(levels), _WINDOWS)
    if len(cuts) < 4:
        return "unclear", 0
    medians = [median(levels[begin:end]) for begin, end in cuts]
    tops = [max(levels[begin:end]) for begin, end in cuts]
    noise = max(_noise(levels, cuts), _GRAIN * high)
    rises = _rises(tops, noise)
    if _climbs_on(medians, noise, high):
        return "leak", rises
    if _goes_up_and_down(levels, high):
        return "saw-tooth", rises
    # The states of the optimizer come with the first step, what is compiled with the first batches: then it stays.
    later = medians[len(medians) // 4 :]
    if max(later) - min(later) <= max(_GROWTH * high, 2 * noise):
        return ("staircase" if _rose_early(levels, later, noise, high) else "steady"), rises
    if _is_staircase(medians, tops, noise, high):
        return "staircase", rises
    return "unclear", rises


def _noise(levels: Sequence[int], cuts: Sequence[tuple[int, int]]) -> float:
    """Return how far samples lie around the course of their window, as a median over windows."""
    spreads = []
    for begin, end in cuts:
        part = levels[begin:end]
        pace = (part[-1] - part[0]) / max(1, len(part) - 1)
        spreads.append(scatter([level - pace * at for at, level in enumerate(part)]) if len(part) > 2 else 0.0)
    return median(spreads)


def _climbs_on(medians: Sequence[float], noise: float, high: int) -> bool:
    """Return whether the windows rise from first to last, in each third, and not in a few leaps."""
    rise = medians[-1] - medians[0]
    if rise <= max(_GROWTH * high, 2.5 * noise) or trend(medians) < _EVEN_TREND:
        return False
    third = len(medians) // 3
    thirds = [medians[third] - medians[0], medians[-third - 1] - medians[third], medians[-1] - medians[-third - 1]]
    leaps = sorted((after - before for before, after in zip(medians, medians[1:])), reverse=True)
    rising = sum(leap > _GRAIN * rise for leap in leaps)
    return min(thirds) > 0.12 * rise and leaps[0] < 0.4 * rise and rising >= 0.6 * len(leaps)


def _is_staircase(medians: Sequence[float], tops: Sequence[float], noise: float, high: int) -> bool:
    """Return whether the tops rise a few times, stand between, and never fall back for long."""
    least = max(noise, _GRAIN * high)
    ups = sum(after - before > least for before, after in zip(medians, medians[1:]))
    fallen = sum(level < highest - 2 * least for level, highest in zip(medians, accumulate(medians, max)))
    risen = medians[-1] - medians[0] > max(2 * least, 1.5 * _GROWTH * high) and order(medians, least) >= _IN_ORDER
    return risen and 1 <= ups <= 0.6 * len(medians) and fallen <= 1 and _rises(tops, noise) >= 2


def _rose_early(levels: Sequence[int], later: Sequence[float], noise: float, high: int) -> bool:
    """Return whether what stays now had climbed in several steps before: batches that were longer and longer come early."""
    early = levels[: len(levels) // 4]
    tops = [max(early[begin:end]) for begin, end in windows(len(early), _WINDOWS)]
    return len(early) >= FEWEST and median(later) - tops[0] > _GROWTH * high and _rises(tops, 3 * noise) >= 2


def _rises(tops: Sequence[float], noise: float) -> int:
    """Return how often a window goes above all before it."""
    count, highest = 0, tops[0]
    for top in tops[1:]:
        if top > highest + noise:
            count += 1
        highest = max(highest, top)
    return count


def _goes_up_and_down(levels: Sequence[int], high: int) -> bool:
    """Return whether it turns again and again by more than a twentieth of the card's use."""
    turns, low, top, rising = 0, levels[0], levels[0], True
    least = _UPS_AND_DOWNS * high
    for level in levels:
        low, top = min(low, level), max(top, level)
        if rising and level < top - least:
            turns, rising, low = turns + 1, False, level
        elif not rising and level > low + least:
            turns, rising, top = turns + 1, True, level
    return turns >= 6


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
    cuts = windows(len(work.levels), 2 * _WINDOWS)
    middles = [median(places[begin:end]) for begin, end in cuts]
    pace = slope(middles, [median(work.levels[begin:end]) for begin, end in cuts])
    return None if pace is None else Slope(low=pace.low * unit, middle=pace.middle * unit, high=pace.high * unit)


def _interval(column: SeriesColumn, places: Sequence[int]) -> float | None:
    """Return the seconds between two samples."""
    times = [column.times[at] for at in places] if column.times else []
    gaps = [after - before for before, after in zip(times, times[1:])]
    return median(gaps) if gaps else None
