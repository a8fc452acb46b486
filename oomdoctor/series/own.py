"""What `oomdoctor run` writes: samples.jsonl and rings (docs/evidence-folder.md)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import ValidationError
from msgspec.json import decode

from oomdoctor.record.evidence import Sample
from oomdoctor.record.ring import MAGIC, read_ring
from oomdoctor.series.builder import SeriesBuilder
from oomdoctor.series.comma_tables import NO_MEMORY
from oomdoctor.series.values import counted_time

OURS = "the run"
"""What processes of the run hold of a card together."""
_RESERVED = ("reserved", "reserved_bytes", "reserved_bytes.all.current")
_TOTAL = ("device_total", "total", "total_bytes")
_TIME = ("t", "time")


def is_samples(lines: Sequence[str]) -> bool:
    """Return whether a text is samples.jsonl."""
    return any(line.startswith('{"t":') and _sample(line) is not None for line in lines[:3])


def read_samples(lines: Sequence[str], builder: SeriesBuilder) -> str | None:
    """Read the samples; the last may be cut."""
    for line in lines:
        sample = _sample(line)
        if sample is None:
            continue
        time = counted_time(sample.t)
        for card in sample.cards:
            builder.add(card.used, time, card=str(card.index), total=card.total)
            if card.ours is not None:
                builder.add(card.ours, time, of="process", card=str(card.index), name=OURS)
        limit = sample.cgroup.limit if sample.cgroup is not None else None
        if sample.cgroup is not None and sample.cgroup.current is not None:
            builder.add(sample.cgroup.current, time, of="host", name="cgroup", total=limit)
        if sample.rss is not None:
            builder.add(sample.rss, time, of="host", name="rss", total=sample.total)
    return None


def is_ring(data: bytes) -> bool:
    """Return whether bytes are a ring."""
    return data.startswith(MAGIC)


def read_ring_series(data: bytes, builder: SeriesBuilder) -> str | None:
    """Read the allocator's counters of a process."""
    ring = read_ring(data)
    if ring is None:
        return "the ring is damaged"
    reserved = next((name for name in _RESERVED if name in ring.names), None)
    if reserved is None:
        return NO_MEMORY
    times = ring.column(next((name for name in _TIME if name in ring.names), ""))
    totals = ring.column(next((name for name in _TOTAL if name in ring.names), ""))
    for time, used, total in zip(times, ring.column(reserved), totals):
        builder.add(
            None if used is None or not 0 <= used < 1e18 else int(used), None if time is None else counted_time(time),
            name="reserved", total=None if total is None or not 0 < total < 1e18 else int(total),
        )  # fmt: skip
    return None


def _sample(line: str) -> Sample | None:
    try:
        return decode(line, type=Sample)
    except (ValidationError, ValueError, RecursionError):
        return None
