"""The trend of memory: whether it stays level, climbs in steps, keeps climbing, or goes up and down.

One classifier for what a log prints, a recorder counts and a monitor samples. Everything is judged on medians of windows, so that single
samples decide nothing; anything between two shapes has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median

from oomdoctor.case.recorded.series import ShapeName
from oomdoctor.findings.statistics import order, scatter, trend, windows

FEWEST = 8
"""With fewer samples than this, the shape of a monitor's series is a guess."""
_WINDOWS = 16
EVEN_TREND = 0.85
"""Kendall's tau at or above which windows rise nearly all the time."""
_IN_ORDER = 0.9
"""Of the windows that differ, nearly all later ones in a staircase are higher."""
GRAIN = 0.005
"""Levels that differ by less than this share of the highest are one level: contexts, libraries and handles come and go."""
_GROWTH = 0.02
"""Less than this share of the highest is not growth that fills a GPU."""
_UPS_AND_DOWNS = 0.05


def find_course(levels: Sequence[int], high: int) -> tuple[ShapeName, int]:
    """Return the shape of levels, of which `high` is the highest that counts, and how often they rose to a new one.

    If there are few levels, each is its own window.
    """
    cuts = windows(len(levels), _WINDOWS) if len(levels) >= 2 * FEWEST else [(at, at + 1) for at in range(len(levels))]
    if len(cuts) < 4:
        return "unclear", 0
    medians = [median(levels[begin:end]) for begin, end in cuts]
    tops = [max(levels[begin:end]) for begin, end in cuts]
    noise = max(_noise(levels, cuts), GRAIN * high)
    rises = _rises(tops, noise)
    if _keeps_climbing(medians, noise, high):
        return "leak", rises
    if _oscillates(levels, high):
        return "saw-tooth", rises
    # Optimizer states are allocated at the first step and compiled code with the first batches; after that the level is stable.
    later = medians[len(medians) // 4 :]
    if max(later) - min(later) <= max(_GROWTH * high, 2 * noise):
        return ("staircase" if _rose_early(levels, later, noise, high) else "steady"), rises
    if _is_staircase(medians, tops, noise, high):
        return "staircase", rises
    return "unclear", rises


def _noise(levels: Sequence[int], cuts: Sequence[tuple[int, int]]) -> float:
    """Return how far samples scatter around the trend of their window, as a median over windows."""
    spreads = []
    for begin, end in cuts:
        part = levels[begin:end]
        pace = (part[-1] - part[0]) / max(1, len(part) - 1)
        spreads.append(scatter([level - pace * at for at, level in enumerate(part)]) if len(part) > 2 else 0.0)
    return median(spreads)


def _keeps_climbing(medians: Sequence[float], noise: float, high: int) -> bool:
    """Return whether the windows rise from first to last, in each third, and not in a few jumps."""
    rise = medians[-1] - medians[0]
    if rise <= max(_GROWTH * high, 2.5 * noise) or trend(medians) < EVEN_TREND:
        return False
    third = len(medians) // 3
    thirds = [medians[third] - medians[0], medians[-third - 1] - medians[third], medians[-1] - medians[-third - 1]]
    leaps = sorted((after - before for before, after in zip(medians, medians[1:])), reverse=True)
    rising = sum(leap > GRAIN * rise for leap in leaps)
    return min(thirds) > 0.12 * rise and leaps[0] <= 0.4 * rise and rising >= 0.6 * len(leaps)


def _is_staircase(medians: Sequence[float], tops: Sequence[float], noise: float, high: int) -> bool:
    """Return whether the tops rise a few times, stay level in between, and never fall back for long."""
    least = max(noise, GRAIN * high)
    ups = sum(after - before > least for before, after in zip(medians, medians[1:]))
    fallen = sum(level < highest - 2 * least for level, highest in zip(medians, accumulate(medians, max)))
    risen = medians[-1] - medians[0] > max(2 * least, 1.25 * _GROWTH * high) and order(medians, least) >= _IN_ORDER
    return risen and 1 <= ups <= 0.6 * len(medians) and fallen <= 1 and _rises(tops, noise) >= 2


def _rose_early(levels: Sequence[int], later: Sequence[float], noise: float, high: int) -> bool:
    """Return whether a level that is now stable was reached in several steps: increasingly long batches come early."""
    early = levels[: len(levels) // 4]
    tops = [max(early[begin:end]) for begin, end in windows(len(early), _WINDOWS)]
    return len(early) >= FEWEST and median(later) - tops[0] > _GROWTH * high and _rises(tops, 3 * noise) >= 2


def _rises(tops: Sequence[float], noise: float) -> int:
    """Return how often a window exceeds all earlier ones."""
    count, highest = 0, tops[0]
    for top in tops[1:]:
        if top > highest + noise:
            count += 1
        highest = max(highest, top)
    return count


def _oscillates(levels: Sequence[int], high: int) -> bool:
    """Return whether it changes direction repeatedly by more than a twentieth of the GPU's use."""
    turns, low, top, rising = 0, levels[0], levels[0], True
    least = _UPS_AND_DOWNS * high
    for level in levels:
        low, top = min(low, level), max(top, level)
        if rising and level < top - least:
            turns, rising, low = turns + 1, False, level
        elif not rising and level > low + least:
            turns, rising, top = turns + 1, True, level
    return turns >= 6
