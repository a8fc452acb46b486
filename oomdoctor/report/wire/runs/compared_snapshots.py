"""Convert what changed between two memory snapshots to the JSON of a comparison."""

from __future__ import annotations

from typing import cast

from oomdoctor.api.runs.compare_snapshots import SnapshotComparison
from oomdoctor.comparing.snapshots import HolderChange, SizeChange
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.comparison import ComparisonV1, HolderChangeV1, SideV1, SizeChangeV1, SnapshotChangeV1, SnapshotGrowthV1
from oomdoctor.report.wire.runs.snapshot_v1 import HeldAt

_LONGEST = 1000


def convert_snapshot_comparison(comparison: SnapshotComparison, version: str) -> ComparisonV1:
    """Convert the comparison; what only logs and configs tell is empty."""
    change = comparison.change
    sides = [SideV1(name=report.files[0].name, memory_failure=None, summary=None) for report in (comparison.before, comparison.after)]
    return ComparisonV1(
        schema="oomdoctor/comparison/v1",
        oomdoctor=version,
        before=sides[0],
        after=sides[1],
        matters=change.matters,
        compared=len(change.categories) + 2,
        changes=(),
        series=(),
        estimates=(),
        differences=(),
        known_of_one=(),
        snapshots=SnapshotChangeV1(
            peak=_size(change.peak),
            reserved=_size(change.reserved),
            failed_before_bytes=change.failed[0],
            failed_after_bytes=change.failed[1],
            counted_before=cast(HeldAt, change.counted_at[0]),
            counted_after=cast(HeldAt, change.counted_at[1]),
            categories=tuple(_holder(entry) for entry in change.categories),
            holders=tuple(_holder(entry) for entry in change.holders),
            growth=tuple(
                SnapshotGrowthV1(site=clean_line(entry.site, _LONGEST), per_step=_size(entry.per_step)) for entry in change.growth
            ),
        ),
    )


def _size(size: SizeChange) -> SizeChangeV1:
    return SizeChangeV1(before_bytes=size.before, after_bytes=size.after)


def _holder(entry: HolderChange) -> HolderChangeV1:
    site = None if entry.site is None else clean_line(entry.site, _LONGEST)
    return HolderChangeV1(site=site, category=entry.category.replace("-", " "), size=_size(entry.size))
