"""Parts of a memory as bars, and bars of one scale below each other: what was seen, what is expected, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from oomdoctor.report.charts import texts
from oomdoctor.report.charts.figure import Drawing, Figures, figure, hue_of, legend, number_of, part_sign, summed_up
from oomdoctor.report.charts.plot import WIDTH
from oomdoctor.report.document import Bar, Bars, Mark, Slice, Style
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_share

_INSET = 2
"""Left and right, so that lines at the ends are whole."""
_HIGH = 24
_BELOW = 12
"""Under a bar, for its range."""
_LINE = 20
"""Of text."""
_NUMBERED = 18
"""What a part must be wide to have room for its number."""
_MARK = 24
"""Above the bars, for the name of the mark."""

_OPEN = 2
"""So many bars have their figures in the legend."""

_Hues = Mapping[str, tuple[str, "int | None"]]
"""The name of a part -> its class and its number, the same in all bars of a chart."""


def drawn_bar(bar: Bar, wording: Wording, number: int) -> str:
    """Return a bar with the table of its parts; bars beside it are drawn below, in the same scale."""
    if not bar.slices:
        return ""
    if bar.beside:
        seen = Bar(bar.value, bar.slices, spread=bar.spread)
        return drawn_bars(Bars(bar.title, (seen, *bar.beside), Mark(1.0, bar.title)), wording, number)
    hues = _hues([bar])
    drawing = _drawing(bar.title, [Bar("", bar.slices, spread=bar.spread)], bar.mark, hues, wording)
    rows = "".join(_row(part.label, [part.value, format_share(part.share)], hues, part.note) for part in bar.slices)
    return figure(drawing, number, wording, legend=f'<table class="legend">{rows}</table>')


def drawn_bars(block: Bars, wording: Wording, number: int) -> str:
    """Return bars below each other, each with its name; of a few bars the figures stand in the legend, of more in a table of their own."""
    if not any(bar.slices for bar in block.bars):
        return ""
    hues = _hues(block.bars, block.parts)
    drawing = _drawing(block.title, block.bars, block.mark, hues, wording)
    figures = _figures(block, hues, wording)
    if len(block.bars) <= _OPEN:
        head = "".join(f"<th>{escape(column)}</th>" for column in figures.columns)
        rows = "".join(_row(label, values, hues) for label, *values in figures.rows)
        return figure(drawing, number, wording, legend=f'<table class="legend"><tr>{head}</tr>{rows}</table>')
    entries = ((part_sign(*sign), label, "") for label, sign in hues.items())
    return figure(drawing, number, wording, legend=legend(entries), figures=figures)


def _row(label: str, values: Sequence[str], hues: _Hues, note: str = "") -> str:
    """Return a row of a legend: the sign of a part, its name, its figures."""
    sign = part_sign(*hues[label]) if label in hues else ""
    cells = "".join(f'<td class="size">{escape(value)}</td>' for value in values)
    return f"<tr><th>{sign}{escape(label)}</th>{cells}" + (f'<td class="dim">{escape(note)}</td>' if note else "") + "</tr>"


def _hues(bars: Sequence[Bar], first: Sequence[str] = ()) -> _Hues:
    """Return the look of each part by its name, in the order in which parts are drawn: parts of one name look alike in all bars."""
    known = {part.label: part.style for bar in reversed(bars) for part in bar.slices}
    named = dict.fromkeys((*first, *(part.label for bar in bars for part in bar.slices if part.style is not Style.GOOD)))
    free = [label for label, style in known.items() if style is Style.GOOD and label not in named]
    order = [(at, label, known[label]) for at, label in enumerate((*named, *free)) if label in known]
    return {label: (hue_of(at, style), number_of(at, style)) for at, label, style in order}


def _drawing(title: str, bars: Sequence[Bar], mark: Mark | None, hues: _Hues, wording: Wording) -> Drawing:
    whole = max(1.0, *(max(_sum(bar), bar.spread[1] if bar.spread else 0.0) for bar in bars), mark.share if mark else 0.0)
    y = _MARK if mark is not None else 2
    shapes, tops = list[str](), list[float]()
    for bar in bars:
        if bar.title or bar.value:
            shapes.append(_named(bar, y + _LINE - 5))
            y += _LINE
        shapes += [*_parts(bar, y, whole, hues), *_spread(bar, y, whole)]
        tops.append(y)
        y += _HIGH + (_BELOW if bar.spread else 0)
        if bar.note:
            shapes.append(f'<text x="{_INSET}" y="{y + _LINE - 4}">{escape(bar.note)}</text>')
            y += _LINE
        y += 8 if len(bars) > 1 else 2
    shapes += [] if mark is None else _mark(mark, tops, whole)
    tells = summed_up([_tells(bar, wording) for bar in bars] + ([] if mark is None else [mark.label]), wording)
    return Drawing(title, tells, y, "".join(shapes))


def _named(bar: Bar, y: float) -> str:
    value = f'<tspan class="value" dx="8">{escape(bar.value)}</tspan>' if bar.value else ""
    return f'<text class="name" x="{_INSET}" y="{y}">{escape(bar.title)}{value}</text>'


def _parts(bar: Bar, y: float, whole: float, hues: _Hues) -> Iterator[str]:
    at = 0.0
    order = {label: number for number, label in enumerate(hues)}
    for part in sorted(bar.slices, key=lambda part: order[part.label]):
        x, width = _x(at, whole), _x(at + part.share, whole) - _x(at, whole)
        hue, number = hues[part.label]
        title = f"{part.label}: {part.value}" if part.value else part.label
        yield (
            f'<rect class="part {hue}" x="{x:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{_HIGH}">'
            f"<title>{escape(title)}</title></rect>"
        )
        if number is not None and width >= _NUMBERED:
            yield f'<text class="number" x="{x + width / 2:.1f}" y="{y + 17}" text-anchor="middle">{number}</text>'
        at += part.share


def _spread(bar: Bar, y: float, whole: float) -> Iterator[str]:
    """Yield the range of a bar, below it: a line from the least to the most with a stroke at each end."""
    if bar.spread is not None:
        low, high = (_x(share, whole) for share in bar.spread)
        top = y + _HIGH + 2
        yield f'<path class="range" d="M{low:.1f} {top}v8M{low:.1f} {top + 4}H{high:.1f}M{high:.1f} {top}v8"/>'


def _mark(mark: Mark, tops: Sequence[float], whole: float) -> list[str]:
    """Return a line through each bar, and the name above the first: what is written between the bars stays free of it."""
    x = _x(mark.share, whole)
    side, anchor = (-4, "end") if mark.share > whole / 2 else (4, "start")
    lines = "".join(f"M{x:.1f} {top - 3}v{_HIGH + 6}" for top in tops)
    return [
        f'<path class="limit" d="M{x:.1f} 4v{_MARK - 8}{lines}"/>',
        f'<text class="limit" x="{x + side:.1f}" y="{_MARK - 6}" text-anchor="{anchor}">{escape(mark.label)}</text>',
    ]


def _x(share: float, whole: float) -> float:
    return _INSET + (WIDTH - 2 * _INSET) * share / whole


def _sum(bar: Bar) -> float:
    return sum(part.share for part in bar.slices)


def _tells(bar: Bar, wording: Wording) -> str:
    parts = wording.item_comma.join(_told(part) for part in bar.slices)
    name = " ".join(part for part in (bar.title, bar.value) if part)
    return f"{name}{wording.colon}{parts}" if name else parts


def _told(part: Slice) -> str:
    return f"{part.label} {part.value or format_share(part.share)}"


def _figures(block: Bars, hues: _Hues, wording: Wording) -> Figures:
    rows = []
    for label in hues:
        sizes = [next((part.value for part in bar.slices if part.label == label), "") for bar in block.bars]
        rows.append((label, *sizes))
    if all(bar.value for bar in block.bars):
        rows.append((wording.say(texts.TOTAL), *(bar.value for bar in block.bars)))
    return Figures((wording.say(texts.PART), *(bar.title for bar in block.bars)), tuple(rows))
