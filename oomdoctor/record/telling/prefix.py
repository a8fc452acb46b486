"""How the lines begin, and single figures of the evidence."""

from __future__ import annotations

from oomdoctor.record.read_folder import RankEvidence

PREFIX = "oomdoctor run: "


def of_rank(rank: RankEvidence) -> str:
    """Return what stands before a line of one rank."""
    return PREFIX if rank.rank is None else f"[rank{rank.rank}]: {PREFIX}"


def counter(stats: dict[str, object], name: str) -> int | None:
    """Return a current figure of the allocator's raw counters: `{name: {all: {current: ...}}}`, or flattened as memory_stats gives it."""
    value: object = stats.get(name)
    for key in ("all", "current"):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        value = stats.get(f"{name}.all.current")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
