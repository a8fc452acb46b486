"""Sizes over time on each other, with the line that encloses them: who held the memory of a card when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from oomdoctor.report.charts import texts
from oomdoctor.report.charts.figure import Drawing, Figures, figure, hue_of, line_sign, number_of, part_sign, summed_up
from oomdoctor.report.charts.plot import HEIGHT, LEFT, RIGHT, TOP, WIDTH, Plot
from oomdoctor.report.document import Area, Areas
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_share, format_size

_COLUMNS = 80
"""Places over the drawing that say what was live there."""
_NAMED = 3
_THICK, _WIDE = 15, 14
"""What an area must be high, and for how long, to have room for its number."""
_MOMENTS = 4
"""Between the moments of the table."""


def drawn_areas(block: Areas, wording: Wording, number: int) -> str:
    """Return the chart; nothing where there is none to draw."""
    points = len(block.line.sizes)
    if not points or not block.areas:
        return ""
    top = max(*block.line.sizes, *map(sum, zip(*(area.sizes for area in block.areas))), 1)
    plot = Plot(0, points - 1, top)
    inside = "".join((*_layers(block.areas, plot), _line(block.line, plot), *_marks(block), *_columns(block)))
    shapes = [*plot.lines(), _scaled(inside)]
    highest = [wording.say(texts.AT_MOST, size=format_size(max(area.sizes))) for area in (*block.areas, block.line)]
    told = summed_up([f"{area.label}: {most}" for area, most in zip((*block.areas, block.line), highest)], wording)
    signs = [part_sign(hue_of(at, area.style), number_of(at, area.style)) for at, area in enumerate(block.areas)]
    entries = "".join(map(_entry, (*signs, line_sign("around")), (*block.areas, block.line), highest))
    drawing = Drawing(block.title, told, TOP + HEIGHT + 8, "".join(shapes))
    return figure(drawing, number, wording, legend=f'<ul class="legend">{entries}</ul>', figures=_figures(block, points, wording))


def _scaled(inside: str) -> str:
    """Return a window on the shapes in their own scale; a page that can act moves it along the axis."""
    box = f"{LEFT - 1} 0 {WIDTH - LEFT + 1} {TOP + HEIGHT + 8}"
    x, y, width, height = box.split()
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<svg class="window" {place} viewBox="{box}" preserveAspectRatio="none">{inside}</svg>'


def _entry(sign: str, area: Area, most: str) -> str:
    """Return a part in the legend, which opens where there is more to tell."""
    named = f'{sign}{escape(area.label)} <span class="dim">{escape(most)}</span>'
    if not area.about:
        return f"<li>{named}</li>"
    stack = f"<pre>{escape(chr(10).join(area.stack))}</pre>" if area.stack else ""
    return f"<li><details><summary>{named}</summary><p>{escape(area.about)}</p>{stack}</details></li>"


def _layers(areas: Sequence[Area], plot: Plot) -> Iterator[str]:
    below = [0] * len(areas[0].sizes)
    for at, area in enumerate(areas):
        above = [low + size for low, size in zip(below, area.sizes)]
        forth = [f"{plot.x(x):.1f} {plot.y(size):.1f}" for x, size in enumerate(above)]
        back = [f"{plot.x(x):.1f} {plot.y(below[x]):.1f}" for x in range(len(below) - 1, -1, -1)]
        title = f"{area.label}: {format_size(max(area.sizes))}"
        yield f'<path class="area {hue_of(at, area.style)}" d="M{" ".join((*forth, *back))}Z"><title>{escape(title)}</title></path>'
        yield from _number(at, below, above, plot)
        below = above


def _number(at: int, below: Sequence[int], above: Sequence[int], plot: Plot) -> Iterator[str]:
    """Yield the number of an area where it is thick for as long as the number is wide."""
    points = len(above)
    wide = max(1, round(_WIDE * points / (WIDTH - RIGHT - LEFT)))
    starts = range(0, points - wide, max(1, wide // 2))
    high, start = max(((plot.y(max(below[x : x + wide])) - plot.y(min(above[x : x + wide])), x) for x in starts), default=(0.0, 0))
    if high >= _THICK:
        middle = start + wide // 2
        y = (plot.y(below[middle]) + plot.y(above[middle])) / 2 + 4
        yield f'<text class="number" x="{plot.x(start + wide / 2):.1f}" y="{y:.1f}" text-anchor="middle">{at + 1}</text>'


def _line(line: Area, plot: Plot) -> str:
    points = " ".join(f"{plot.x(x):.1f} {plot.y(size):.1f}" for x, size in enumerate(line.sizes))
    title = f"{line.label}: {format_size(max(line.sizes))}"
    return f'<path class="curve around" d="M{points}"><title>{escape(title)}</title></path>'


def _marks(areas: Areas) -> Iterator[str]:
    """Yield moments: those with a name as a line of their own with it, the others dotted."""
    for mark in areas.marks:
        x = round(LEFT + (WIDTH - RIGHT - LEFT) * min(1.0, max(0.0, mark.share)), 1)
        yield f'<path class="{"failure" if mark.label else "step"}" d="M{x} {TOP}V{TOP + HEIGHT}"/>'
        if mark.label:
            side, anchor = (-10, "end") if mark.share > 0.5 else (10, "start")
            yield f'<path class="failure cross" d="M{x - 5:.1f} {TOP - 15}l10 10m0 -10l-10 10"/>'
            yield f'<text class="failure" x="{x + side:.1f}" y="{TOP - 6}" text-anchor="{anchor}">{escape(mark.label)}</text>'


def _columns(areas: Areas) -> Iterator[str]:
    """Yield places to point at: what was live there, the largest first."""
    points = len(areas.line.sizes)
    count = min(_COLUMNS, points)
    wide = (WIDTH - RIGHT - LEFT) / count
    for column in range(count):
        at = (2 * column + 1) * points // (2 * count)
        held = sorted(((area.sizes[at], area.label) for area in areas.areas), reverse=True)[:_NAMED]
        lines = [
            f"{areas.line.label}: {format_size(areas.line.sizes[at])}",
            *(f"{format_size(size)}  {label}" for size, label in held if size),
        ]
        title = escape("\n".join(lines))
        x = f"{LEFT + column * wide:.1f}"
        yield f'<rect class="over" x="{x}" y="{TOP}" width="{wide:.1f}" height="{HEIGHT}"><title>{title}</title></rect>'


def _figures(block: Areas, points: int, wording: Wording) -> Figures:
    """Return the size of each at a few moments."""
    positions = sorted({round(part * (points - 1) / _MOMENTS) for part in range(_MOMENTS + 1)})
    names = (format_share(at / max(1, points - 1)) for at in positions)
    rows = ((area.label, *(format_size(area.sizes[at]) for at in positions)) for area in (*block.areas, block.line))
    return Figures((wording.say(texts.WHEN), *names), tuple(rows))
