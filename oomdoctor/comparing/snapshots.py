"""Compare two memory snapshots: which lines and categories hold more memory, and what now grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.facts import by_category, last_refusal
from oomdoctor.snapshots.places import short_place

_SAME = 0.03
"""Allocators round and steps differ by a block: two sizes that differ by less than this share count as equal."""


class SizeChange(Struct, frozen=True):
    """One figure in bytes, before and after."""

    before: int
    after: int

    @property
    def more(self) -> int:
        """Return the increase in bytes."""
        return self.after - self.before

    @property
    def is_same(self) -> bool:
        """Return whether the change is too small to mention."""
        return abs(self.more) <= _SAME * max(self.before, self.after)


class HolderChange(Struct, frozen=True):
    """Memory held by a line or a category, before and after; the site is taken from the second side, or the first if missing there."""

    site: str | None
    category: str
    size: SizeChange


class GrowthChange(Struct, frozen=True):
    """Memory that a line adds per step, before and after; 0 if it does not grow."""

    site: str
    per_step: SizeChange


class SnapshotChange(Struct, frozen=True, kw_only=True):
    """What changed between two snapshots, each represented by its fullest device or the one that failed."""

    peak: SizeChange
    reserved: SizeChange
    failed: tuple[int | None, int | None]
    """Size of the request that ended each run; None if none did."""
    categories: tuple[HolderChange, ...]
    holders: tuple[HolderChange, ...]
    """Holders that changed, largest change first."""
    growth: tuple[GrowthChange, ...]
    counted_at: tuple[str, str]
    """The moment in each snapshot at which holders are counted: `oom`, `peak` or `end`."""

    @property
    def matters(self) -> bool:
        """Return whether memory use changed, a request fails on one side only, or something now grows."""
        began = any(growth.per_step.before == 0 for growth in self.growth)
        return not self.peak.is_same or not self.reserved.is_same or (self.failed[0] is None) is not (self.failed[1] is None) or began


def snapshot_change(before: DeviceExplanation, after: DeviceExplanation) -> SnapshotChange:
    """Compare two devices."""
    return SnapshotChange(
        peak=SizeChange(before.peak.requested, after.peak.requested),
        reserved=SizeChange(before.peak.reserved, after.peak.reserved),
        failed=(_failed(before), _failed(after)),
        categories=tuple(_categories(before, after)),
        holders=tuple(_changed(_lines(before), _lines(after))),
        growth=tuple(_growth(before, after)),
        counted_at=(before.holders_at, after.holders_at),
    )


def _failed(device: DeviceExplanation) -> int | None:
    refusal = last_refusal(device)
    return None if refusal is None or refusal.survived else refusal.requested


def _categories(before: DeviceExplanation, after: DeviceExplanation) -> Iterator[HolderChange]:
    old, new = by_category(before.holders), by_category(after.holders)
    changes = (HolderChange(None, name, SizeChange(old.get(name, 0), new.get(name, 0))) for name in {**new, **old})
    yield from sorted(changes, key=lambda change: (-abs(change.size.more), change.category))


_Line = tuple[str | None, str]
"""A site's file and function (a line number moves when code is added above it), and its category."""


def _lines(device: DeviceExplanation) -> Mapping[_Line, tuple[str | None, int]]:
    """Return each function's first site and its bytes."""
    out: dict[_Line, tuple[str | None, int]] = {}
    for holder in device.holders:
        line = (None if holder.site is None else _function(holder.site), holder.category)
        site, size = out.get(line, (holder.site, 0))
        out[line] = (site, size + holder.size)
    return out


def _function(site: str) -> str:
    file, _, name = short_place(site).rsplit(":", 2)
    return f"{file}:{name}"


def _changed(old: Mapping[_Line, tuple[str | None, int]], new: Mapping[_Line, tuple[str | None, int]]) -> Sequence[HolderChange]:
    nothing = (None, 0)
    changes = (
        HolderChange(new.get(line, old.get(line, nothing))[0], line[1], SizeChange(old.get(line, nothing)[1], new.get(line, nothing)[1]))
        for line in {**new, **old}
    )
    return sorted((change for change in changes if not change.size.is_same), key=lambda change: (-abs(change.size.more), change.site or ""))


def _growth(before: DeviceExplanation, after: DeviceExplanation) -> Iterator[GrowthChange]:
    old, new = ({_function(growth.site): growth for growth in device.growth} for device in (before, after))
    for line in {**new, **old}:
        sizes = (side[line].bytes_per_step if line in side else 0 for side in (old, new))
        yield GrowthChange((new.get(line) or old[line]).site, SizeChange(*sizes))
