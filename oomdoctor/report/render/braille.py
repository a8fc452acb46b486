"""Curves on a terminal, made of braille characters: two dots across and four down in each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from oomdoctor.report.charts.curves import CurveLine, plot_of
from oomdoctor.report.charts.plot import HEIGHT, LEFT, RIGHT, TOP, WIDTH, Plot, place_name
from oomdoctor.report.charts.reduce import CurvePoint, clean_points, reduced
from oomdoctor.report.document import Areas, Curve, Curves, Moment
from oomdoctor.report.render.bars import totals
from oomdoctor.report.render.styled_line import StyledLine
from oomdoctor.units import format_size

FEWEST_LINES = 6
"""Of a chart with its legend and its axis; with fewer it tells nothing."""
_MOST_CURVES = 4
_LABEL = 12
"""Cells on the left, for the names of sizes."""
_ENDS = 6
"""Cells on the right, for the numbers of the curves."""
_HUES = ("blue", "magenta", "cyan", "green")
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot, row by row (Unicode 16, U+2800)."""
_EMPTY = 0x2800


def chart_lines(block: Curves | Areas, width: int, lines: int) -> Iterator[StyledLine]:
    """Yield a chart of so many lines: what the curves are, the curves, the axis; nothing where no size is known."""
    block = _as_curves(block) if isinstance(block, Areas) else block
    curves = [(curve.label, reduced(clean_points(curve.points))) for curve in block.curves[:_MOST_CURVES]]
    curves = [(label, points) for label, points in curves if any(size is not None for _, size in points)]
    if not curves or lines < FEWEST_LINES:
        return
    canvas = _Canvas(width - _LABEL - _ENDS, lines - 2, _close(plot_of(block, curves), curves))
    yield _legend(block, curves, width)
    yield from _rows(block, [points for _, points in curves], canvas)
    yield _axis(block, canvas)


class _Canvas(Struct, frozen=True):
    """Dots of a number of cells, in the scales of a plot."""

    columns: int
    rows: int
    plot: Plot

    def x(self, at: float) -> int:
        return round((self.plot.x(at) - LEFT) / (WIDTH - RIGHT - LEFT) * (2 * self.columns - 1))

    def y(self, size: int) -> int:
        return round((self.plot.y(size) - TOP) / HEIGHT * (4 * self.rows - 1))


def _close(plot: Plot, curves: Sequence[CurveLine]) -> Plot:
    """Return the scales for a few lines of text: where all sizes are in the upper half, they begin at the lowest."""
    lowest = min(size for _, points in curves for _, size in points if size is not None)
    return replace(plot, low=lowest) if plot.top > lowest > plot.top / 2 else plot


def _as_curves(areas: Areas) -> Curves:
    """Return what is in use and what encloses it, as curves over the whole recording."""
    named = next((mark for mark in areas.marks if mark.label), None)
    last = len(areas.line.sizes) - 1
    curves = (_numbered(areas.title, totals(areas)), _numbered(areas.line.label, areas.line.sizes))
    return Curves(areas.title, "", curves, failure=None if named is None else Moment(named.share * last, named.label))


def _numbered(label: str, sizes: Sequence[int]) -> Curve:
    return Curve(label, tuple((float(at), size) for at, size in enumerate(sizes)))


def _legend(block: Curves, curves: Sequence[CurveLine], width: int) -> StyledLine:
    """Name what is drawn, as much of it as has room."""
    line = StyledLine("  ")
    if block.failure is not None:
        _fitting(line, f"✗ {block.failure.label}   ", "bold red", width)
    if block.limit is not None:
        _fitting(line, f"┈ {block.limit.label} {format_size(block.limit.bytes)}   ", "", width)
    for at, (label, points) in enumerate(curves):
        most = format_size(max(size for _, size in points if size is not None))
        _fitting(line, f"{at + 1} {label} {most}   ", _HUES[at], width)
    return line


def _fitting(line: StyledLine, text: str, look: str, width: int) -> None:
    """Append a text where it has room."""
    if line.width + cell_len(text.rstrip()) <= width:
        line.append(text, look)


def _rows(block: Curves, curves: Sequence[Sequence[CurvePoint]], canvas: _Canvas) -> Iterator[StyledLine]:
    dots = [_dots(points, canvas) for points in curves]
    limit = None if block.limit is None else canvas.y(block.limit.bytes) // 4
    failure = None if block.failure is None else canvas.x(block.failure.at) // 2
    plot = canvas.plot
    ends = [canvas.y(next(size for _, size in reversed(points) if size is not None)) // 4 for points in curves]
    for row in range(canvas.rows):
        name = format_size(plot.top) if row == 0 else format_size(plot.low) if row == canvas.rows - 1 else ""
        line = StyledLine(f"{name[: _LABEL - 2]:>{_LABEL - 2}} ", "dim").append("│", "dim")
        cells = [_cell(row, column, dots, limit, failure) for column in range(canvas.columns)]
        for look, together in groupby(cells, key=itemgetter(1)):
            line.append("".join(text for text, _ in together), look)
        yield line.append(" ").append(*_numbers(row, ends))


def _cell(row: int, column: int, dots: Sequence[dict[tuple[int, int], int]], limit: int | None, failure: int | None) -> tuple[str, str]:
    """Return the character of a cell and its look: the mark of the failure, dots in the hue of the last curve there, or the limit."""
    bits = [drawn.get((row, column), 0) for drawn in dots]
    if row == 0 and column == failure:
        return "✗", "bold red"
    if any(bits):
        together = 0
        for bit in bits:
            together |= bit
        return chr(_EMPTY + together), _HUES[max(at for at, bit in enumerate(bits) if bit)]
    return ("┈", "dim") if row == limit else (" ", "")


def _numbers(row: int, ends: Sequence[int]) -> tuple[str, str]:
    """Return the numbers of the curves that end in a row."""
    here = [at for at, end in enumerate(ends) if end == row]
    return ",".join(str(at + 1) for at in here)[: _ENDS - 1], _HUES[here[-1]] if here else ""


def _dots(points: Sequence[CurvePoint], canvas: _Canvas) -> dict[tuple[int, int], int]:
    """Return the dots of a curve: row and column of a cell -> its bits. Holes stay empty."""
    out: dict[tuple[int, int], int] = {}
    places = [None if size is None else (canvas.x(at), canvas.y(size)) for at, size in points]
    for here, there in pairwise([*places, None]):
        for x, y in _between(here, there or here) if here is not None else ():
            cell = (y // 4, x // 2)
            out[cell] = out.get(cell, 0) | _DOTS[y % 4][x % 2]
    return out


def _between(here: tuple[int, int], there: tuple[int, int]) -> Iterator[tuple[int, int]]:
    across, down = there[0] - here[0], there[1] - here[1]
    steps = max(abs(across), abs(down), 1)
    for step in range(steps + 1):
        yield here[0] + round(across * step / steps), here[1] + round(down * step / steps)


def _axis(block: Curves, canvas: _Canvas) -> StyledLine:
    if not block.axis:
        return StyledLine(" " * (_LABEL - 1) + "└" + "─" * canvas.columns, "dim")
    first, last = f"{block.axis} {place_name(canvas.plot.start)}", place_name(canvas.plot.end)
    gap = canvas.columns - cell_len(first) - cell_len(last)
    return StyledLine(" " * _LABEL + first + " " * gap + last if gap > 0 else " " * _LABEL + first, "dim")
