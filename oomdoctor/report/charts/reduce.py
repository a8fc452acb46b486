"""Many points -> few hundred: of each column the lowest and the highest, so that no peak gets lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

MOST_POINTS = 400
_COLUMNS = (MOST_POINTS - 2) // 2

CurvePoint = tuple[float, "int | None"]


def clean_points(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    """Return the points in the order of their places; what is no place goes, and what is no size is a hole."""
    return sorted(((at, _size(size)) for at, size in points if math.isfinite(at)), key=lambda point: point[0])


def reduced(points: Sequence[CurvePoint]) -> Sequence[CurvePoint]:
    """Return at most 400 points: the ends, and the lowest and highest size in each of 199 columns; few points stay as they are."""
    if len(points) <= MOST_POINTS:
        return points
    first, *between, last = points
    start, end = first[0], last[0]
    # Halves first: the difference of two places may be more than a float holds.
    width = (end / 2 - start / 2) or 1.0

    def column(point: CurvePoint) -> int:
        return min(_COLUMNS - 1, int((point[0] / 2 - start / 2) / width * _COLUMNS))

    return [first, *(point for _, together in groupby(between, key=column) for point in _extremes(list(together))), last]


def _extremes(points: Sequence[CurvePoint]) -> Iterator[CurvePoint]:
    """Yield the lowest and the highest of a column in their order; a hole where nothing is known."""
    known = [(size, at) for at, size in points if size is not None]
    if not known:
        yield points[0][0], None
        return
    lowest, highest = min(known, key=lambda point: point[0]), max(known, key=lambda point: point[0])
    for size, at in sorted({lowest, highest}, key=lambda point: point[1]):
        yield at, size


def _size(size: float | None) -> int | None:
    return int(size) if size is not None and math.isfinite(size) and size >= 0 else None
