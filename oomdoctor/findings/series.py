"""A memory series: whether the memory a log prints stays level, climbs in steps, or grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomdoctor.case.event import Event, Kind
from oomdoctor.findings.courses import find_course

_FIELDS = (
    "reserved_bytes", "peak_reserved_bytes", "peak_allocated_bytes", "peak_bytes", "allocated_bytes", "used_bytes", "peak_used_bytes",
    "memory_bytes",
)  # fmt: skip
_SHORTEST = 5
"""Fewer figures are enough only if they rise evenly."""
_LEAST = 0.1
"""As a share of the highest: less growth than this over all figures is not what filled a GPU."""
_WORDS: Mapping[str, str] = {"staircase": "staircase", "steady": "flat"}
"""Shapes other than a leak, and the values of `log.memory_series`."""


def memory_series(events: Sequence[Event]) -> list[int]:
    """Return the longest series in bytes, from one rank and one kind of line."""
    series: dict[tuple[str, str, int | None], list[int]] = {}
    for event in events:
        if event.kind is not Kind.CONTEXT or "total_bytes" in event.fields:
            continue
        name = next((name for name in _FIELDS if event.size(name) is not None), None)
        if name is not None:
            series.setdefault((event.signature, name, event.rank), []).append(event.size(name) or 0)
    return max(series.values(), key=len, default=[])


def series_course(values: Sequence[int]) -> str:
    """Return `none`, `flat`, `staircase` or `growth`: a staircase rises a few times with level stretches, growth rises all the time."""
    high = max(values, default=0)
    name, _ = find_course(values, high)
    if name == "leak":
        return "growth" if high - values[0] >= _LEAST * high else "none"
    return "none" if len(values) < _SHORTEST else _WORDS.get(name, "none")
