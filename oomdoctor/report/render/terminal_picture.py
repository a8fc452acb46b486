"""A report as it looks on a terminal, as a picture in SVG: for a page that shows no escapes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby

from rich.cells import cell_len

from oomdoctor.report.document import Document
from oomdoctor.report.render.styled_line import StyledLine
from oomdoctor.report.render.terminal import lines

_CELL, _LINE = 8.4, 19
_MARGIN = 16
_CHART = 9
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" aria-label="{title}">
<style>
rect {{ fill: #fff; stroke: #d1d9e0; }}
text {{ white-space: pre; fill: #1b1f24; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }}
.bold {{ font-weight: 600; }} .dim {{ fill: #59636e; }} .underline {{ text-decoration: underline; }} .red {{ fill: #cf222e; }}
.green {{ fill: #1a7f37; }} .yellow {{ fill: #9a6700; }} .blue, .bright_blue {{ fill: #0969da; }}
.magenta, .bright_magenta {{ fill: #8250df; }} .cyan, .bright_cyan {{ fill: #107e94; }}
@media (prefers-color-scheme: dark) {{ rect {{ fill: #0d1117; stroke: #3d444d; }} text {{ fill: #e6edf3; }} .dim {{ fill: #9198a1; }}
.red {{ fill: #f85149; }} .green {{ fill: #3fb950; }} .yellow {{ fill: #d29922; }} .blue, .bright_blue {{ fill: #4493f8; }}
.magenta, .bright_magenta {{ fill: #ab7df8; }} .cyan, .bright_cyan {{ fill: #39c5cf; }} }}
</style>
<rect x="0.5" y="0.5" width="{inner:.0f}" height="{tall}" rx="8"/>
{text}
</svg>
"""


def render(document: Document, *, width: int) -> str:
    """Render the report as a picture of a terminal of `width` cells, with its charts."""
    shown = lines(document, width=width, chart=_CHART)
    across, down = width * _CELL + 2 * _MARGIN, len(shown) * _LINE + 2 * _MARGIN
    text = "\n".join(piece for number, line in enumerate(shown) for piece in _pieces(line, _MARGIN + (number + 1) * _LINE - 5))
    return _SVG.format(width=across, height=down, inner=across - 1, tall=down - 1, title=escape(document.title), text=text)


def _pieces(line: StyledLine, y: int) -> Iterator[str]:
    """Yield the runs of one look, each at its cell and exactly as wide as its cells, whatever the font."""
    cells = 0
    for look, together in groupby(line.pieces, key=lambda piece: piece[1]):
        text = "".join(piece for piece, _ in together)
        start, cells = cells, cells + cell_len(text)
        blank = len(text) - len(text.lstrip(" "))
        core = text.strip(" ")
        if core:
            looks = f' class="{escape(look)}"' if look else ""
            place = f'x="{_MARGIN + (start + blank) * _CELL:.1f}" y="{y}" textLength="{cell_len(core) * _CELL:.1f}"'
            yield f'<text{looks} {place} lengthAdjust="spacingAndGlyphs">{escape(core)}</text>'
