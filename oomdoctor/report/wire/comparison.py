"""Convert a comparison to `oomdoctor/comparison/v1`: additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.comparison import Comparison, Effect, OneSided, RunChange, Series, Side
from oomdoctor.case.estimate import Estimate
from oomdoctor.report.diagnosis.headline import summary
from oomdoctor.report.wording.wording import Wording

Tag = Literal["oomdoctor/comparison/v1"]


class SideV1(Struct, frozen=True, kw_only=True):
    """One of the two runs or machines."""

    name: str
    memory_failure: str | None
    summary: str | None


class RunChangeV1(Struct, frozen=True, kw_only=True):
    """Something that is not the same and of which it is known what that means for memory."""

    id: str
    about: str
    effect: Effect
    before: str | None
    after: str | None
    why: str
    source: str


class PointV1(Struct, frozen=True, kw_only=True):
    """The same moment of both runs, in bytes."""

    at: str
    before: int
    after: int


class SeriesV1(Struct, frozen=True, kw_only=True):
    """One memory figure that both runs printed again and again."""

    figure: str
    effect: Effect | None
    points: tuple[PointV1, ...]


class SideEstimateV1(Struct, frozen=True, kw_only=True):
    """What the memory model says of one side, in bytes of one card."""

    expected_bytes: int
    low_bytes: int
    high_bytes: int
    parts: dict[str, int]


class DifferenceV1(Struct, frozen=True, kw_only=True):
    """Something that is not the same; nothing is known of what it means for memory."""

    name: str
    before: str
    after: str


class OneSidedV1(Struct, frozen=True, kw_only=True):
    """Something that only one side says."""

    about: str
    before: str | None
    after: str | None
    wrong_now: bool


class SizeChangeV1(Struct, frozen=True, kw_only=True):
    """One figure of both sides."""

    before_bytes: int
    after_bytes: int


class HolderChangeV1(Struct, frozen=True, kw_only=True):
    """What a line or a category holds in both snapshots."""

    site: str | None
    """file:line:function of the side that has it, the second first; null of a category, and where no line was recorded."""
    category: str
    size: SizeChangeV1


class SnapshotGrowthV1(Struct, frozen=True, kw_only=True):
    """What a line adds in each step; 0 where it does not grow."""

    site: str
    per_step: SizeChangeV1


class SnapshotChangeV1(Struct, frozen=True, kw_only=True):
    """What changed between two memory snapshots, each by the card that failed, else by the fullest."""

    peak: SizeChangeV1
    reserved: SizeChangeV1
    """At the peak."""
    failed_before_bytes: int | None
    """The request that ended the run; null where none did."""
    failed_after_bytes: int | None
    counted_before: Literal["oom", "peak", "end"]
    """The moment at which holders are counted."""
    counted_after: Literal["oom", "peak", "end"]
    categories: tuple[HolderChangeV1, ...]
    holders: tuple[HolderChangeV1, ...]
    """The lines that hold more or less, the largest change first."""
    growth: tuple[SnapshotGrowthV1, ...]


class ComparisonV1(Struct, frozen=True, kw_only=True):
    """What changed between two runs or machines that matters for memory."""

    schema: Tag
    oomdoctor: str
    """The version that wrote the report."""
    before: SideV1
    after: SideV1
    matters: bool
    compared: int
    """How many facts both of them state."""
    changes: tuple[RunChangeV1, ...]
    """The most suspicious first."""
    series: tuple[SeriesV1, ...]
    estimates: tuple[SideEstimateV1, ...]
    """Before and after; empty where one of them is not told well enough."""
    differences: tuple[DifferenceV1, ...]
    known_of_one: tuple[OneSidedV1, ...]
    snapshots: SnapshotChangeV1 | None = None
    """Of two memory snapshots; null of anything else."""


def convert_comparison(comparison: Comparison, wording: Wording, version: str) -> ComparisonV1:
    """Convert a comparison, with its texts in one language."""
    return ComparisonV1(
        schema="oomdoctor/comparison/v1",
        oomdoctor=version,
        before=_side(comparison.before, wording),
        after=_side(comparison.after, wording),
        matters=comparison.matters,
        compared=comparison.compared,
        changes=tuple(_change(change, wording) for change in comparison.changes),
        series=tuple(_series(series) for series in comparison.series),
        estimates=tuple(_estimate(estimate) for estimate in comparison.estimates or ()),
        differences=tuple(DifferenceV1(name=fact.name, before=fact.before, after=fact.after) for fact in comparison.differences),
        known_of_one=tuple(_one_sided(fact, wording) for fact in comparison.one_sided),
    )


def _side(side: Side, wording: Wording) -> SideV1:
    diagnosis = side.diagnosis if side.diagnosis is not None and side.diagnosis.case.sources else None
    if diagnosis is None:
        return SideV1(name=side.name, memory_failure=None, summary=None)
    return SideV1(name=side.name, memory_failure=diagnosis.case.verdict.memory_failure, summary=summary(diagnosis, wording))


def _change(change: RunChange, wording: Wording) -> RunChangeV1:
    return RunChangeV1(
        id=change.id,
        about=wording.say(change.about),
        effect=change.effect,
        before=change.before,
        after=change.after,
        why=wording.say(change.why),
        source=change.source,
    )


def _series(series: Series) -> SeriesV1:
    points = (PointV1(at=point.at, before=point.before, after=point.after) for point in series.points)
    return SeriesV1(figure=series.figure, effect=series.effect, points=tuple(points))


def _estimate(estimate: Estimate) -> SideEstimateV1:
    return SideEstimateV1(expected_bytes=estimate.expected, low_bytes=estimate.low, high_bytes=estimate.high, parts=dict(estimate.terms))


def _one_sided(fact: OneSided, wording: Wording) -> OneSidedV1:
    return OneSidedV1(about=wording.say(fact.about), before=fact.before, after=fact.after, wrong_now=fact.wrong_now)
