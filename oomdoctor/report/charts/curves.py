"""Bytes over steps or time: a line for each curve, the card's line, the phases, and where the run failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from oomdoctor.report.charts import texts
from oomdoctor.report.charts.figure import Drawing, Figures, figure, legend, line_sign, summed_up
from oomdoctor.report.charts.plot import BELOW, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Plot, place_name
from oomdoctor.report.charts.reduce import CurvePoint, clean_points, reduced
from oomdoctor.report.document import Curves, Limit, Moment, Stretch
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

MOST_CURVES = 8
_ROWS = 16
"""Of the table; each row is a stretch of the axis with the highest size in it."""
_NAME = 56
"""A stretch that is narrower has no room for its name."""

CurveLine = tuple[str, Sequence[CurvePoint]]


def drawn_curves(block: Curves, wording: Wording, number: int) -> str:
    """Return the chart; nothing where no size is known."""
    lines: list[CurveLine] = [(curve.label, reduced(clean_points(curve.points))) for curve in block.curves[:MOST_CURVES]]
    lines = [(label, points) for label, points in lines if any(size is not None for _, size in points)]
    if not lines:
        return ""
    plot = plot_of(block, lines)
    shapes = [
        *plot.lines(),
        *plot.places(block.axis, sorted({at for _, points in lines for at, _ in points})),
        *(shape for at, phase in enumerate(block.phases) for shape in _phase(phase, at, plot)),
        *(shape for at, (label, points) in enumerate(lines) for shape in _line(label, points, at, plot)),
        *(() if block.limit is None else _limit(block.limit, block.failure, plot, wording)),
        *(() if block.failure is None else _failure(block.failure, plot)),
    ]
    drawing = Drawing(block.title, _tells(block, lines, wording), TOP + HEIGHT + BELOW, "".join(shapes))
    return figure(drawing, number, wording, legend=_legend(lines, wording), figures=_figures(block, lines, wording))


def plot_of(block: Curves, lines: Sequence[CurveLine]) -> Plot:
    """Return the scales that all of it fits in."""
    places = [at for _, points in lines for at, _ in points]
    places += [] if block.failure is None else [block.failure.at]
    sizes = [size for _, points in lines for _, size in points if size is not None]
    sizes += [] if block.limit is None else [block.limit.bytes]
    is_log = block.is_log and min(places) > 0 and min(sizes) > 0
    return Plot(min(places), max(places), max(1, *sizes), min(sizes) if is_log else 0, is_log)


def _line(label: str, points: Sequence[CurvePoint], at: int, plot: Plot) -> Iterator[str]:
    """Yield a path for the curve, and a dot for each size that stands alone."""
    drawn = []
    for run in _runs(points):
        places = [f"{plot.x(place):.1f} {plot.y(size):.1f}" for place, size in run]
        if len(places) > 1:
            drawn.append("M" + "L".join(places))
        else:
            x, y = places[0].split()
            yield f'<circle class="dot l{at}" cx="{x}" cy="{y}" r="3"/>'
    if drawn:
        title = f"{label}: {format_size(_highest(points))}"
        yield f'<path class="curve l{at}" d="{"".join(drawn)}"><title>{escape(title)}</title></path>'


def _runs(points: Sequence[CurvePoint]) -> Iterator[list[tuple[float, int]]]:
    """Yield the points between two holes."""
    run: list[tuple[float, int]] = []
    for at, size in points:
        if size is not None:
            run.append((at, size))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _limit(limit: Limit, failure: Moment | None, plot: Plot, wording: Wording) -> Iterator[str]:
    y = plot.y(limit.bytes)
    left = failure is None or plot.x(failure.at) > WIDTH / 2
    x, anchor = (LEFT + 4, "start") if left else (WIDTH - RIGHT - 4, "end")
    yield f'<path class="limit" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
    name = f"{limit.label}{wording.colon}{format_size(limit.bytes)}"
    yield f'<text class="limit" x="{x}" y="{y - 6:.1f}" text-anchor="{anchor}">{escape(name)}</text>'


def _failure(failure: Moment, plot: Plot) -> Iterator[str]:
    """Yield a line down, a cross at its head, and the name beside it."""
    x = plot.x(failure.at)
    side, anchor = (-10, "end") if x > WIDTH / 2 else (10, "start")
    yield f'<path class="failure" d="M{x:.1f} {TOP}V{TOP + HEIGHT}"/>'
    yield f'<path class="failure cross" d="M{x - 5:.1f} {TOP - 15}l10 10m0 -10l-10 10"/>'
    yield f'<text class="failure" x="{x + side:.1f}" y="{TOP - 6}" text-anchor="{anchor}">{escape(failure.label)}</text>'


def _phase(phase: Stretch, at: int, plot: Plot) -> Iterator[str]:
    start, end = plot.x(phase.start), plot.x(phase.end)
    if end <= start:
        return
    shade = "phase" if at % 2 == 0 else "phase other"
    drawn = f'<rect class="{shade}" x="{start:.1f}" y="{TOP}" width="{end - start:.1f}" height="{HEIGHT}">'
    yield f"{drawn}<title>{escape(phase.label)}</title></rect>"
    if end - start >= _NAME:
        yield f'<text x="{start + 5:.1f}" y="{TOP + HEIGHT - 7}">{escape(phase.label)}</text>'


def _legend(lines: Sequence[CurveLine], wording: Wording) -> str:
    return legend(
        (line_sign(f"l{at}"), label, wording.say(texts.AT_MOST, size=format_size(_highest(points))))
        for at, (label, points) in enumerate(lines)
    )


def _tells(block: Curves, lines: Sequence[CurveLine], wording: Wording) -> str:
    told = []
    for label, points in lines:
        known = [size for _, size in points if size is not None]
        told.append(
            wording.say(
                texts.CURVE, label=label, first=format_size(known[0]), last=format_size(known[-1]), most=format_size(_highest(points))
            )
        )
    places = [at for _, points in lines for at, _ in points]
    told.append(wording.say(texts.FROM_TO, axis=block.axis, start=place_name(min(places)), end=place_name(max(places))))
    if block.limit is not None:
        told.append(f"{block.limit.label}{wording.colon}{format_size(block.limit.bytes)}")
    if block.failure is not None:
        told.append(wording.say(texts.AT, label=block.failure.label, axis=block.axis, at=place_name(block.failure.at)))
    return summed_up(told, wording)


def _figures(block: Curves, lines: Sequence[CurveLine], wording: Wording) -> Figures:
    """Return the highest size of each curve in each of a few stretches of the axis; where there are few places, each of them."""
    places = sorted({at for _, points in lines for at, _ in points})
    each = -(-len(places) // _ROWS)
    stretches = [places[at : at + each] for at in range(0, len(places), each)]
    rows = []
    for stretch in stretches:
        first, last = stretch[0], stretch[-1]
        name = place_name(first) if first == last else wording.say(texts.BETWEEN, low=place_name(first), high=place_name(last))
        sizes = ([size for at, size in points if size is not None and first <= at <= last] for _, points in lines)
        rows.append((name, *(format_size(max(known)) if known else "" for known in sizes)))
    return Figures((block.axis, *(label for label, _ in lines)), tuple(rows), wording.say(texts.HIGHEST) if each > 1 else "")


def _highest(points: Sequence[CurvePoint]) -> int:
    return max((size for _, size in points if size is not None), default=0)
