"""Memory at the same moments in two runs, from figures that both print repeatedly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomdoctor.case.comparison import Point, Series
from oomdoctor.case.event import Event, Kind

_SAMPLED_FROM = 40
"""Long logs are sampled; up to this many lines of a kind, none is skipped, so positions in the series stay exact."""
_MOST_POINTS = 6
_MOST_SERIES = 3
_FEWEST = 2

_Key = tuple[str, str, "int | None"]


def same_moments(before: Sequence[Event], after: Sequence[Event]) -> tuple[Series, ...]:
    """Return the figures that both runs print, at steps that both reached; longest series first."""
    earlier, later = _series(before), _series(after)
    longest: dict[str, Series] = {}
    for key in sorted(earlier.keys() & later.keys(), key=str):
        common = [at for at in earlier[key] if at in later[key]]
        if len(common) < _FEWEST:
            continue
        points = tuple(Point(at=at, before=earlier[key][at], after=later[key][at]) for at in _spread(common))
        known = longest.get(key[1])
        if known is None or len(points) > len(known.points):
            longest[key[1]] = Series(figure=key[1], points=points)
    return tuple(sorted(longest.values(), key=lambda series: -len(series.points))[:_MOST_SERIES])


def _series(events: Sequence[Event]) -> Mapping[_Key, Mapping[str, int]]:
    """Return bytes by moment, for each signature, figure and rank."""
    series: dict[_Key, dict[str, int]] = {}
    for event in events:
        if event.kind is not Kind.CONTEXT or "total_bytes" in event.fields:
            continue
        step = event.fields.get("step")
        for name in event.fields:
            size = event.size(name)
            if not name.endswith("_bytes") or size is None:
                continue
            sizes = series.setdefault((event.signature, name, event.rank), {})
            if isinstance(step, int):
                sizes[str(step)] = size
            elif len(sizes) < _SAMPLED_FROM:
                sizes[f"#{len(sizes) + 1}"] = size
    return series


def _spread(steps: Sequence[str]) -> Sequence[str]:
    """Return a few moments spread from the first to the last."""
    if len(steps) <= _MOST_POINTS:
        return steps
    return [steps[round(number * (len(steps) - 1) / (_MOST_POINTS - 1))] for number in range(_MOST_POINTS)]
