"""A memory series: whether what a log prints of its memory stays, climbs in steps, or grows."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.event import Event, Kind

_FIELDS = (
    "reserved_bytes", "peak_reserved_bytes", "peak_allocated_bytes", "peak_bytes", "allocated_bytes", "used_bytes", "peak_used_bytes",
    "memory_bytes",
)  # fmt: skip
_SHORTEST = 5
_SHORTEST_LINE = 4
_EVEN = 1.5
"""Four figures are enough where they rise evenly: the largest rise is at most this multiple of the smallest."""
_STEP = 0.01
"""A change below this share of the highest value is noise."""


def memory_series(events: Sequence[Event]) -> list[int]:
    """Return the longest series in bytes, of one rank and one kind of line."""
    series: dict[tuple[str, str, int | None], list[int]] = {}
    for event in events:
        if event.kind is not Kind.CONTEXT or "total_bytes" in event.fields:
            continue
        name = next((name for name in _FIELDS if event.size(name) is not None), None)
        if name is not None:
            series.setdefault((event.signature, name, event.rank), []).append(event.size(name) or 0)
    return max(series.values(), key=len, default=[])


def series_shape(values: Sequence[int]) -> str:
    """Return `none`, `flat`, `staircase` or `growth`: a staircase rises a few times and stands between, growth rises at most points."""
    changes = [after - before for before, after in zip(values, values[1:])]
    least = max(max(values, default=0) * _STEP, 1)
    if len(values) < _SHORTEST:
        return "growth" if len(values) == _SHORTEST_LINE and least < max(changes) <= _EVEN * min(changes) else "none"
    ups = sum(change > least for change in changes)
    downs = sum(change < -least for change in changes)
    if max(values) - min(values) <= 3 * least:
        return "flat"
    if not ups or downs > len(changes) * 0.2 or values[-1] - values[0] <= 2 * least:
        return "none"
    rising = sum(change > 0 for change in changes)
    return "growth" if rising > len(changes) * 0.6 else "staircase"
