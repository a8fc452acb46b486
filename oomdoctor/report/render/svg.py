"""Drawings for the page: sizes over time, and stretches of memory. Titles of shapes are shown where a pointer rests; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate

from oomdoctor.report.document import Area, Areas, Strip, Strips, Style
from oomdoctor.units import format_size

_HUES = 10
_WIDTH, _HEIGHT, _LEFT, _TOP = 800, 260, 86, 22
_ROW = 18
_COLUMNS = 80
"""Places over the drawing that say what was live there."""
_NAMED = 3
_TITLED = 0.004
"""Of a strip, what a piece must take for a title of its own."""
_LINES = 4
SVG_STYLE = """
body { max-width: 60rem; }
svg { display: block; width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg text { fill: var(--dim); } .line { fill: none; stroke: var(--ink); stroke-width: 1.2; } .grid-line { stroke: var(--line); }
.step { stroke: var(--dim); stroke-dasharray: 1 3; } .oom { stroke: var(--bad); stroke-width: 2; }
svg text.oom { fill: var(--bad); stroke: none; }
.cell { fill: var(--bad); } .row { stroke: var(--line); }
.over { fill: transparent; } .over:hover { fill: var(--ink); fill-opacity: .12; }
.strip rect { height: 14px; } .strip rect:hover, path.area:hover { opacity: .75; }
.a0 { fill: #0969da; background: #0969da; } .a1 { fill: #e16f24; background: #e16f24; } .a2 { fill: #1b9e77; background: #1b9e77; }
.a3 { fill: #8250df; background: #8250df; } .a4 { fill: #d4a72c; background: #d4a72c; } .a5 { fill: #bf3989; background: #bf3989; }
.a6 { fill: #4f9fc8; background: #4f9fc8; } .a7 { fill: #9a6b3f; background: #9a6b3f; } .a8 { fill: #7a8450; background: #7a8450; }
.a9 { fill: #b3446c; background: #b3446c; } .rest { fill: #8c959f; } .unused { fill: var(--soft); stroke: var(--line); stroke-width: .5; }
.key.unused { background: var(--soft); border: 1px solid var(--line); }"""


def drawn_areas(areas: Areas) -> str:
    """Return sizes over time as a figure: areas on each other, the line around them, and moments that have a name."""
    points = len(areas.line.sizes)
    if not points or not areas.areas:
        return ""
    top = max(*areas.line.sizes, *map(sum, zip(*(area.sizes for area in areas.areas), strict=True)), 1)
    parts = [*_scale(top), *_layers(areas.areas, top), _line(areas.line, top), *_marks(areas), *_columns(areas)]
    legend = "".join(legend_row(_hue(at, area), area.label, format_size(max(area.sizes))) for at, area in enumerate(areas.areas))
    return figure(areas.title, _HEIGHT + 2 * _TOP, parts, legend)


def drawn_strips(strips: Strips) -> str:
    """Return stretches of memory as a figure, each on a line as long as it is large."""
    if not strips.strips:
        return ""
    largest = max(sum(piece.size for piece in strip.pieces) for strip in strips.strips) or 1
    rows = [part for at, strip in enumerate(strips.strips) for part in _strip(strip, at, largest, strips)]
    used = sorted({piece.key for strip in strips.strips for piece in strip.pieces if piece.key is not None})
    legend = "".join(legend_row(_key_hue(key, strips), strips.keys[key], "") for key in used) + legend_row("unused", strips.free, "")
    return figure(strips.title, len(strips.strips) * _ROW, rows, legend)


def figure(title: str, height: int, parts: Sequence[str], legend: str) -> str:
    """Return a drawing as wide as the page, with its title and the rows of its legend."""
    drawn = f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{drawn}<table>{legend}</table></figure>"


def legend_row(hue: str, label: str, value: str) -> str:
    """Return what a colour stands for."""
    return f'<tr><th><span class="key {hue}"></span>{escape(label)}</th><td class="size">{escape(value)}</td></tr>'


def _hue(at: int, area: Area) -> str:
    return "rest" if area.style is Style.DIM else f"a{at % _HUES}"


def _key_hue(key: int, strips: Strips) -> str:
    return "rest" if key == len(strips.keys) - 1 else f"a{key % _HUES}"


def _x(at: float, points: int) -> str:
    return f"{_LEFT + (_WIDTH - _LEFT) * at / max(1, points - 1):.0f}"


def _y(size: int, top: int) -> int:
    return _TOP + round(_HEIGHT * (1 - size / top))


def _scale(top: int) -> Iterator[str]:
    """Yield lines across the drawing, and what they stand for."""
    for part in range(_LINES + 1):
        y = _y(top * part // _LINES, top)
        yield f'<path class="grid-line" d="M{_LEFT} {y}H{_WIDTH}"/><text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">'
        yield f"{format_size(top * part // _LINES)}</text>"


def _layers(areas: Sequence[Area], top: int) -> Iterator[str]:
    below = [0] * len(areas[0].sizes)
    for at, area in enumerate(areas):
        above = [low + size for low, size in zip(below, area.sizes, strict=True)]
        forth = [f"{_x(x, len(above))} {_y(size, top)}" for x, size in enumerate(above)]
        back = [f"{_x(x, len(below))} {_y(below[x], top)}" for x in range(len(below) - 1, -1, -1)]
        title = f"{area.label}: {format_size(max(area.sizes))}"
        yield f'<path class="area {_hue(at, area)}" d="M{" ".join((*forth, *back))}Z"><title>{escape(title)}</title></path>'
        below = above


def _line(line: Area, top: int) -> str:
    points = " ".join(f"{_x(x, len(line.sizes))} {_y(size, top)}" for x, size in enumerate(line.sizes))
    title = f"{line.label}: {format_size(max(line.sizes))}"
    return f'<path class="line" d="M{points}"><title>{escape(title)}</title></path>'


def _marks(areas: Areas) -> Iterator[str]:
    """Yield moments: those with a name as a line of their own with it, the others dotted."""
    for mark in areas.marks:
        x = round(_LEFT + (_WIDTH - _LEFT) * min(1.0, max(0.0, mark.share)))
        yield f'<path class="{"oom" if mark.label else "step"}" d="M{x} {_TOP}V{_TOP + _HEIGHT}"/>'
        if mark.label:
            anchor = "end" if mark.share > 0.5 else "start"
            yield f'<text class="oom" x="{x}" y="{_TOP - 6}" text-anchor="{anchor}">{escape(mark.label)}</text>'


def _columns(areas: Areas) -> Iterator[str]:
    """Yield places to point at: what was live there, the largest first."""
    points = len(areas.line.sizes)
    count = min(_COLUMNS, points)
    wide = (_WIDTH - _LEFT) / count
    for column in range(count):
        at = (2 * column + 1) * points // (2 * count)
        held = sorted(((area.sizes[at], area.label) for area in areas.areas), reverse=True)[:_NAMED]
        lines = [
            f"{areas.line.label}: {format_size(areas.line.sizes[at])}",
            *(f"{format_size(size)}  {label}" for size, label in held if size),
        ]
        title = escape("\n".join(lines))
        x = f"{_LEFT + column * wide:.0f}"
        yield f'<rect class="over" x="{x}" y="{_TOP}" width="{wide:.1f}" height="{_HEIGHT}"><title>{title}</title></rect>'


def _strip(strip: Strip, at: int, largest: int, strips: Strips) -> Iterator[str]:
    y = at * _ROW
    unit = (_WIDTH - _LEFT) / largest
    yield f'<text x="{_LEFT - 6}" y="{y + 11}" text-anchor="end">{escape(strip.label)}</text><g class="strip">'
    ends = list(accumulate((piece.size for piece in strip.pieces), initial=0))
    for piece, start in zip(strip.pieces, ends, strict=False):
        hue = "unused" if piece.key is None else _key_hue(piece.key, strips)
        name = strips.free if piece.key is None else strips.keys[piece.key]
        title = f"<title>{escape(name)}: {format_size(piece.size)}</title>" if piece.size > _TITLED * largest else ""
        yield f'<rect class="{hue}" x="{_LEFT + start * unit:.1f}" y="{y}" width="{max(piece.size * unit, 0.3):.1f}">{title}</rect>'
    yield "</g>"
