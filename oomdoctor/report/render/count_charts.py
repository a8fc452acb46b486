"""Drawings of counts for the page: bars over time, and a grid of things and times. Titles of shapes are shown where a pointer rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from oomdoctor.report.document import CountBars, CountGrid, Counts
from oomdoctor.report.render.svg import figure, legend_row

_WIDTH, _LEFT, _TOP = 800, 150, 14
_HEIGHT = 140
_ROW = 18
_HUES = 10
_NAMED = 6
"""So many times have their name below the drawing."""
_NAME = 70
"""As wide as the name of a day; where there is less room to the right edge it is left out."""
_FAINTEST = 0.3


def drawn_bars(bars: CountBars) -> str:
    """Return a bar for each time as a figure, its parts on each other."""
    top = max((sum(bar.counts) for bar in bars.bars), default=0)
    if not top:
        return ""
    wide = (_WIDTH - _LEFT) / len(bars.bars)
    parts = [
        f'<path class="grid-line" d="M{_LEFT} {_TOP + _HEIGHT}H{_WIDTH}M{_LEFT} {_TOP}H{_WIDTH}"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{top}</text>',
        *(_key(bars, at, top, wide) for at in range(len(bars.keys))),
        *(_over(bar, bars.keys, _LEFT + at * wide, wide) for at, bar in enumerate(bars.bars) if sum(bar.counts)),
        *_times([bar.label for bar in bars.bars], _TOP + _HEIGHT + 14, wide),
    ]
    totals = [sum(bar.counts[at] for bar in bars.bars) for at in range(len(bars.keys))]
    told = "".join(legend_row(f"a{at % _HUES}", key, f"{total:,}") for at, (key, total) in enumerate(zip(bars.keys, totals, strict=True)))
    return figure(bars.title, _TOP + _HEIGHT + 20, parts, told)


def drawn_grid(grid: CountGrid) -> str:
    """Return a row for each thing as a figure, and in it a cell for each time that has some, the darker the more."""
    top = max((count for row in grid.rows for count in row.counts), default=0)
    if not top:
        return ""
    wide = (_WIDTH - _LEFT) / len(grid.columns)
    parts = [part for at, row in enumerate(grid.rows) for part in _cells(row, grid.columns, at * _ROW, top, wide)]
    height = len(grid.rows) * _ROW
    return figure(grid.title, height + 20, [*parts, *_times(grid.columns, height + 14, wide)], "")


def _key(bars: CountBars, key: int, top: int, wide: float) -> str:
    """Return the parts of one key in all bars, as one path."""
    drawn = []
    for at, bar in enumerate(bars.bars):
        high = bar.counts[key] * _HEIGHT / top
        if high:
            below = sum(bar.counts[:key]) * _HEIGHT / top
            drawn.append(f"M{_LEFT + (at + 0.1) * wide:.1f} {_TOP + _HEIGHT - below:.1f}v{-high:.1f}h{wide * 0.8:.1f}v{high:.1f}z")
    return f'<path class="a{key % _HUES}" d="{"".join(drawn)}"/>'


def _over(bar: Counts, keys: Sequence[str], left: float, wide: float) -> str:
    """Return a place to point at: what a bar stands for."""
    told = "\n".join((bar.label, *(f"{count:,}  {key}" for key, count in zip(keys, bar.counts, strict=True) if count)))
    return f'<rect class="over" x="{left:.1f}" y="{_TOP}" width="{wide:.1f}" height="{_HEIGHT}"><title>{escape(told)}</title></rect>'


def _cells(row: Counts, columns: Sequence[str], y: int, top: int, wide: float) -> Iterator[str]:
    yield f'<text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end">{escape(row.label)}</text>'
    yield f'<path class="row" d="M{_LEFT} {y + 8}H{_WIDTH}"/>'
    for at, (column, count) in enumerate(zip(columns, row.counts, strict=True)):
        if count:
            shade = _FAINTEST + (1 - _FAINTEST) * count / top
            yield f'<rect class="cell" x="{_LEFT + at * wide:.1f}" y="{y}" width="{wide * 0.9:.1f}" height="16" fill-opacity="{shade:.2f}">'
            yield f"<title>{escape(f'{row.label} {column}: {count:,}')}</title></rect>"


def _times(labels: Sequence[str], y: int, wide: float) -> Iterator[str]:
    """Yield the names of some times below a drawing."""
    step = max(1, -(-len(labels) // _NAMED))
    for at in range(0, len(labels), step):
        if at == 0 or (len(labels) - at) * wide >= _NAME:
            yield f'<text x="{_LEFT + at * wide:.1f}" y="{y}">{escape(labels[at])}</text>'
