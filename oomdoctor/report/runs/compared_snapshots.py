"""Two memory snapshots -> Document: which needs more, and by which lines and categories."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.api.runs.compare_snapshots import SnapshotComparison
from oomdoctor.case.text import Text
from oomdoctor.comparing.snapshots import HolderChange, SizeChange, SnapshotChange
from oomdoctor.report.document import Block, Cell, Document, Facts, Heading, Paragraph, Row, Span, Style, Table
from oomdoctor.report.runs.snapshot_holders import Names, category_name, place
from oomdoctor.report.wording import comparison as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.places import short_place
from oomdoctor.units import format_size

_LINES = 8
_CATEGORIES = 8
_MORE = Text("The second snapshot holds {size} more at its peak: {before} → {after}.", "后者峰值多占 {size}：{before} → {after}。")
_LESS = Text("The second snapshot holds {size} less at its peak: {before} → {after}.", "后者峰值少占 {size}：{before} → {after}。")
_SAME = Text("Both hold about the same at their peak: {before} → {after}.", "两者峰值相近：{before} → {after}。")
_PEAK, _RESERVED, _FAILED = Text("peak in use", "峰值占用"), Text("reserved at that time", "当时预留"), Text("failed request", "失败的申请")
_NONE = Text("none", "无")
_BY_CATEGORY = Text("What the memory is used for", "显存用在哪里")
_COLUMNS = (Text("purpose", "用途"), Text("before", "之前"), Text("after", "之后"), Text("change", "变化"))
_WHEN = {
    "oom": Text("at the failed request", "申请失败时"),
    "peak": Text("at the peak", "峰值时"),
    "end": Text("when it was saved", "保存时"),
}
_COUNTED = Text("Memory in use is counted {first} before, and {second} after.", "占用的统计时刻：之前为{first}，之后为{second}。")
_LINES_CHANGED = Text("Lines that hold more or less", "占用有变化的代码行")
_GROWS = Text("What grows", "逐步增长的部分")
_PER_STEP = Text("{site}: {before} → {after} per step", "{site}：每步 {before} → {after}")


def compose(comparison: SnapshotComparison, wording: Wording, version: str) -> Document:
    """Compose the answer, the peak first."""
    change, names = comparison.change, comparison.after.categories
    blocks = (
        *_verdict(change, wording),
        *_totals(comparison, wording),
        *_categories(change, names, wording),
        *_lines(change, names, wording),
        *_growth(change, wording),
    )
    return Document(wording.say(texts.TITLE, version=version), tuple(blocks), lang=wording.lang)


def signed(size: SizeChange) -> str:
    """Return what came or went: `+1.20 GiB`."""
    return f"{'+' if size.more > 0 else ''}{format_size(size.more)}"


def _verdict(change: SnapshotChange, wording: Wording) -> Iterator[Block]:
    peak = change.peak
    text, style = (_SAME, Style.PLAIN) if peak.is_same else (_MORE, Style.BAD) if peak.more > 0 else (_LESS, Style.GOOD)
    sizes = {"size": format_size(abs(peak.more)), "before": format_size(peak.before), "after": format_size(peak.after)}
    yield Paragraph((Span(wording.say(text, **sizes), Style.STRONG if style is Style.PLAIN else style),))


def _totals(comparison: SnapshotComparison, wording: Wording) -> Iterator[Block]:
    change = comparison.change
    failed = " → ".join(wording.say(_NONE) if size is None else format_size(size) for size in change.failed)
    yield Facts(
        (
            Row(wording.say(texts.BEFORE), comparison.before.files[0].name),
            Row(wording.say(texts.AFTER), comparison.after.files[0].name),
            Row(wording.say(_PEAK), _both(change.peak)),
            Row(wording.say(_RESERVED), _both(change.reserved)),
            *((Row(wording.say(_FAILED), failed),) if change.failed != (None, None) else ()),
        )
    )


def _both(size: SizeChange) -> str:
    return f"{format_size(size.before)} → {format_size(size.after)}"


def _categories(change: SnapshotChange, names: Names, wording: Wording) -> Iterator[Block]:
    columns = tuple(Cell(wording.say(column)) for column in _COLUMNS)
    rows = tuple(_row(entry, category_name(entry.category, names, wording)) for entry in change.categories[:_CATEGORIES])
    if change.counted_at[0] != change.counted_at[1]:
        first, second = (wording.say(_WHEN[moment]) for moment in change.counted_at)
        yield Paragraph((Span(wording.say(_COUNTED, first=first, second=second), Style.DIM),))
    if rows:
        yield Table(wording.say(_BY_CATEGORY), columns, rows)


def _row(entry: HolderChange, name: str) -> tuple[Cell, ...]:
    size = entry.size
    style = Style.PLAIN if size.is_same else Style.BAD if size.more > 0 else Style.GOOD
    return Cell(name), Cell(format_size(size.before)), Cell(format_size(size.after)), Cell(signed(size), style)


def _lines(change: SnapshotChange, names: Names, wording: Wording) -> Iterator[Block]:
    if not change.holders:
        return
    yield Heading(wording.say(_LINES_CHANGED))
    yield Facts(
        tuple(
            Row(
                signed(entry.size),
                place(entry.site, wording),
                wording.comma.join((category_name(entry.category, names, wording), _both(entry.size))),
                Style.BAD if entry.size.more > 0 else Style.GOOD,
            )
            for entry in change.holders[:_LINES]
        )
    )


def _growth(change: SnapshotChange, wording: Wording) -> Iterator[Block]:
    if not change.growth:
        return
    yield Heading(wording.say(_GROWS))
    for growth in change.growth[:_LINES]:
        sizes = {"before": format_size(growth.per_step.before), "after": format_size(growth.per_step.after)}
        style = Style.BAD if growth.per_step.before == 0 else Style.PLAIN
        yield Paragraph((Span(wording.say(_PER_STEP, site=short_place(growth.site), **sizes), style),))
