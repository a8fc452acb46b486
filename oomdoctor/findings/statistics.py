"""Medians, ranks and slopes that are robust against single samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from oomdoctor.case.recorded.series import Slope

_NINETY = 1.645
"""Standard deviations within which nine of ten values of a normal distribution fall."""


def trend(levels: Sequence[float]) -> float:
    """Return Kendall's tau of levels against their order: 1 if each is above all earlier ones, -1 if below, 0 if equal."""
    pairs = len(levels) * (len(levels) - 1) // 2
    score = sum((after > before) - (after < before) for at, after in enumerate(levels) for before in levels[:at])
    return score / pairs if pairs else 0.0


def order(levels: Sequence[float], least: float) -> float:
    """Return how consistently pairs that differ by more than `least` rise: 1 if all do, -1 if all fall, 0 if none differs."""
    ups = sum(after > before + least for at, after in enumerate(levels) for before in levels[:at])
    downs = sum(after < before - least for at, after in enumerate(levels) for before in levels[:at])
    return (ups - downs) / (ups + downs) if ups + downs else 0.0


def slope(places: Sequence[float], levels: Sequence[float]) -> Slope | None:
    """Return the median of all slopes between two points, and the range that contains it nine times out of ten (Sen 1968)."""
    slopes = sorted(
        (after - before) / (there - here)
        for at, (there, after) in enumerate(zip(places, levels))
        for here, before in zip(places[:at], levels[:at])
        if there > here
    )
    if not slopes:
        return None
    count = len(levels)
    spread = _NINETY * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, int((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))
    return Slope(low=slopes[low], middle=median(slopes), high=slopes[high])


def scatter(values: Sequence[float]) -> float:
    """Return the spread of values around their median: the median distance, as a standard deviation."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def windows(count: int, most: int) -> list[tuple[int, int]]:
    """Return `count` samples cut into up to `most` windows of nearly equal size, each of at least two."""
    number = max(1, min(most, count // 2))
    return [(count * at // number, count * (at + 1) // number) for at in range(number)]
