"""Stretches of memory below each other, each as long as it is large, and what of them somebody holds."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import accumulate

from oomdoctor.report.charts.figure import HUES, Drawing, figure, legend, part_sign, summed_up
from oomdoctor.report.charts.plot import WIDTH
from oomdoctor.report.document import Strip, Strips
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_LEFT = 150
_ROW = 20
_HIGH = 16
_TITLED = 0.004
"""Of the longest strip, what a piece must take for a title of its own."""
_NUMBERED = 18


def drawn_strips(block: Strips, wording: Wording, number: int) -> str:
    """Return the chart; nothing where there are no strips."""
    if not block.strips:
        return ""
    largest = max(sum(piece.size for piece in strip.pieces) for strip in block.strips) or 1
    shapes = [shape for at, strip in enumerate(block.strips) for shape in _strip(strip, at, largest, block)]
    used = sorted({piece.key for strip in block.strips for piece in strip.pieces if piece.key is not None})
    # No sizes: the strips are not all that there is, and what each holds in all stands beside its number in the drawing over time.
    entries = [(part_sign(_hue(key, block), key + 1), block.keys[key], "") for key in used]
    entries.append((part_sign("free", None), block.free, ""))
    told = summed_up([label for _, label, _ in entries], wording)
    drawing = Drawing(block.title, told, len(block.strips) * _ROW, "".join(shapes))
    return figure(drawing, number, wording, legend=legend(entries))


def _hue(key: int, block: Strips) -> str:
    return "rest" if key == len(block.keys) - 1 else f"a{key % HUES}"


def _strip(strip: Strip, at: int, largest: int, block: Strips) -> Iterator[str]:
    y = at * _ROW
    unit = (WIDTH - _LEFT) / largest
    yield f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(strip.label)}</text>'
    ends = list(accumulate((piece.size for piece in strip.pieces), initial=0))
    for piece, start in zip(strip.pieces, ends):
        x, width = _LEFT + start * unit, piece.size * unit
        hue = "free" if piece.key is None else _hue(piece.key, block)
        name = block.free if piece.key is None else block.keys[piece.key]
        title = f"<title>{escape(name)}: {format_size(piece.size)}</title>" if piece.size > _TITLED * largest else ""
        yield f'<rect class="part {hue}" x="{x:.1f}" y="{y}" width="{max(width, 0.3):.1f}" height="{_HIGH}">{title}</rect>'
        if piece.key is not None and width >= _NUMBERED:
            yield f'<text class="number" x="{x + width / 2:.1f}" y="{y + 12}" text-anchor="middle">{piece.key + 1}</text>'
