"""Counts: bars over time, and a grid of things and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from string import ascii_uppercase

from oomdoctor.report.charts import texts
from oomdoctor.report.charts.figure import HUES, Drawing, Figures, figure, legend, part_sign, summed_up
from oomdoctor.report.charts.plot import WIDTH
from oomdoctor.report.document import CountBars, CountGrid, Counts
from oomdoctor.report.wording.wording import Wording

_LEFT, _TOP = 150, 14
_HEIGHT = 140
_ROW = 22
_NAMED = 5
"""So many times have their name below the drawing."""
_NAME = 110
"""As wide as the name of a day; where there is less room to the right edge it is left out."""
_LETTER_WIDE = 14
_LETTER_HIGH = 15
_FAINTEST = 0.25
_LONGEST_LABEL = 20


def drawn_count_bars(block: CountBars, wording: Wording, number: int) -> str:
    """Return a bar for each time, its parts on each other."""
    top = max((sum(bar.counts) for bar in block.bars), default=0)
    if not top:
        return ""
    wide = (WIDTH - _LEFT) / len(block.bars)
    shapes = [
        f'<path class="grid-line" d="M{_LEFT} {_TOP + _HEIGHT}H{WIDTH}M{_LEFT} {_TOP}H{WIDTH}"/>',
        f'<text x="{_LEFT - 8}" y="{_TOP + 4}" text-anchor="end">{top:,}</text>',
        f'<text x="{_LEFT - 8}" y="{_TOP + _HEIGHT + 4}" text-anchor="end">0</text>',
        *(_key(block, at, top, wide) for at in range(len(block.keys))),
        *(shape for at, bar in enumerate(block.bars) for shape in _letters(bar, at, top, wide)),
        *(_over(bar, block.keys, _LEFT + at * wide, wide) for at, bar in enumerate(block.bars) if sum(bar.counts)),
        *_times([bar.label for bar in block.bars], _TOP + _HEIGHT + 17, wide),
    ]
    totals = [f"{sum(bar.counts[at] for bar in block.bars):,}" for at in range(len(block.keys))]
    entries = [(part_sign(f"a{at % HUES}", _letter(at)), key, total) for at, (key, total) in enumerate(zip(block.keys, totals))]
    told = summed_up([wording.say(texts.COUNT, label=key, n=total) for _, key, total in entries], wording)
    drawing = Drawing(block.title, told, _TOP + _HEIGHT + 24, "".join(shapes))
    rows = tuple((bar.label, *(f"{count:,}" for count in bar.counts)) for bar in block.bars)
    figures = Figures((wording.say(texts.WHEN), *block.keys), rows)
    return figure(drawing, number, wording, legend=legend(entries), figures=figures)


def drawn_count_grid(block: CountGrid, wording: Wording, number: int) -> str:
    """Return a row for each thing, and in it a cell for each time that has some: its number, and the darker the more."""
    top = max((count for row in block.rows for count in row.counts), default=0)
    if not top:
        return ""
    wide = (WIDTH - _LEFT) / len(block.columns)
    shapes = [shape for at, row in enumerate(block.rows) for shape in _cells(row, block.columns, at * _ROW, top, wide)]
    height = len(block.rows) * _ROW
    shapes += _times(block.columns, height + 14, wide)
    told = summed_up([wording.say(texts.COUNT, label=row.label, n=sum(row.counts)) for row in block.rows], wording)
    drawing = Drawing(block.title, told, height + 20, "".join(shapes))
    busy = [at for at in range(len(block.columns)) if any(row.counts[at] for row in block.rows)]
    rows = tuple((row.label, *(f"{row.counts[at]:,}" if row.counts[at] else "" for at in busy)) for row in block.rows)
    return figure(drawing, number, wording, figures=Figures(("", *(block.columns[at] for at in busy)), rows))


def _key(block: CountBars, key: int, top: int, wide: float) -> str:
    """Return the parts of one key in all bars, as one path."""
    drawn = []
    for at, bar in enumerate(block.bars):
        high = bar.counts[key] * _HEIGHT / top
        if high:
            below = sum(bar.counts[:key]) * _HEIGHT / top
            drawn.append(f"M{_LEFT + (at + 0.1) * wide:.1f} {_TOP + _HEIGHT - below:.1f}v{-high:.1f}h{wide * 0.8:.1f}v{high:.1f}z")
    return f'<path class="part a{key % HUES}" d="{"".join(drawn)}"/>'


def _letter(key: int) -> str:
    """Return the sign of a key; a number would be taken for a count."""
    return ascii_uppercase[key % len(ascii_uppercase)]


def _letters(bar: Counts, at: int, top: int, wide: float) -> Iterator[str]:
    """Yield the letters of the parts that are large enough for one."""
    below = 0
    for key, count in enumerate(bar.counts):
        high = count * _HEIGHT / top
        if high >= _LETTER_HIGH and wide * 0.8 >= _LETTER_WIDE:
            y = _TOP + _HEIGHT - below * _HEIGHT / top - high / 2 + 4
            yield f'<text class="number" x="{_LEFT + (at + 0.5) * wide:.1f}" y="{y:.1f}" text-anchor="middle">{_letter(key)}</text>'
        below += count


def _over(bar: Counts, keys: Sequence[str], left: float, wide: float) -> str:
    """Return a place to point at: what a bar stands for."""
    told = "\n".join((bar.label, *(f"{count:,}  {key}" for key, count in zip(keys, bar.counts) if count)))
    return f'<rect class="over" x="{left:.1f}" y="{_TOP}" width="{wide:.1f}" height="{_HEIGHT}"><title>{escape(told)}</title></rect>'


def _cells(row: Counts, columns: Sequence[str], y: int, top: int, wide: float) -> Iterator[str]:
    label = row.label if len(row.label) <= _LONGEST_LABEL else row.label[: _LONGEST_LABEL - 1] + "…"
    yield f'<text x="{_LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(label)}</text>'
    yield f'<path class="grid-line" d="M{_LEFT} {y + 10}H{WIDTH}"/>'
    for at, (column, count) in enumerate(zip(columns, row.counts)):
        if count:
            shade, x = _FAINTEST + (1 - _FAINTEST) * count / top, _LEFT + at * wide
            yield f'<rect class="cell ground" x="{x:.1f}" y="{y}" width="{wide * 0.9:.1f}" height="19"/>'
            yield f'<rect class="cell" x="{x:.1f}" y="{y}" width="{wide * 0.9:.1f}" height="19" fill-opacity="{shade:.2f}">'
            yield f"<title>{escape(f'{row.label} {column}: {count:,}')}</title></rect>"
            if len(f"{count:,}") * 8 + 4 <= wide * 0.9:
                looks = "number" if shade > 0.85 else "count"
                yield f'<text class="{looks}" x="{x + wide * 0.45:.1f}" y="{y + 14}" text-anchor="middle">{count:,}</text>'


def _times(labels: Sequence[str], y: int, wide: float) -> Iterator[str]:
    """Yield the names of some times below a drawing."""
    step = max(1, -(-len(labels) // _NAMED))
    for at in range(0, len(labels), step):
        if at == 0 or (len(labels) - at) * wide >= _NAME:
            yield f'<text x="{_LEFT + at * wide:.1f}" y="{y}">{escape(labels[at])}</text>'
