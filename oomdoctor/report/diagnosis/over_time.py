"""Memory over time -> blocks: a sentence for each series with what was recorded and what was worked out, and a drawing of the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.recorded.series import SeenSeries, SeriesShape, Slope
from oomdoctor.case.text import Text
from oomdoctor.report.charts.reduce import clean_points, reduced
from oomdoctor.report.document import Block, Curve, Curves, Folded, Heading, Limit, Moment, Paragraph, Span, Stretch
from oomdoctor.report.wording import series as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_share, format_size

_TELLING = ("leak", "staircase", "unclear", "climb", "saw-tooth", "steady")
_SHOWN = 3
_MOST = 24
_POINTS = 240
_LONGEST_NAME = 40
_CURVES = 8


def over_time(series: Sequence[SeenSeries], wording: Wording, *, failed: bool) -> Iterator[Block]:
    """Yield what monitors recorded, the most telling series first; the rest is folded. Of a run that `failed` nothing is foretold."""
    shaped = [(shown, shown.shape) for shown in series if shown.shape is not None and shown.column.of != "host"]
    if any(shown.column.of == "card" for shown, _ in shaped):
        shaped = [(shown, shape) for shown, shape in shaped if shown.column.of == "card"]
    if not shaped:
        return
    shaped.sort(key=lambda entry: (entry[1].last_climb is None, _TELLING.index(entry[1].name), -entry[1].last))
    yield Heading(wording.say(texts.OVER_TIME))
    for shown, shape in shaped[:_SHOWN]:
        yield Paragraph((Span(_sentence(shown, shape, wording, failed=failed)),))
    yield from _chart(shaped, wording)
    rest = shaped[_SHOWN:]
    if rest:
        paragraphs = tuple(Paragraph((Span(_sentence(shown, shape, wording, failed=failed)),)) for shown, shape in rest[:_MOST])
        yield Folded(wording.say(texts.MORE, n=len(rest)), paragraphs, _sentence(*rest[0], wording, failed=failed))


def _sentence(shown: SeenSeries, shape: SeriesShape, wording: Wording, *, failed: bool) -> str:
    is_share = shown.column.is_share
    lowest, highest = _size(shape.lowest, is_share), _size(shape.usual_highest, is_share)
    stays = shape.name == "steady" and lowest == highest
    parts = [
        wording.say(
            texts.STAYED if stays else texts.SHAPES[shape.name],
            whose=_whose(shown, wording),
            lowest=lowest,
            highest=highest,
            first=_size(shape.first, is_share),
            last=_size(shape.last, is_share),
            rises=shape.rises,
            over=_over(shown, shape, wording),
        )
    ]
    if shape.per_hour is not None:
        parts.append(_pace(texts.PACE["hour"], shape.per_hour, is_share, wording))
    elif shape.per_step is not None:
        parts.append(_pace(texts.PACE["step"], shape.per_step, is_share, wording))
    if shape.hours_to_full is not None and not failed and not shape.given_back:
        parts.append(wording.say(texts.FULL_IN, span=_span(3600 * shape.hours_to_full, wording)))
    if shape.last_climb is not None:
        parts.append(wording.say(texts.LAST_CLIMB, size=_size(shape.last_climb, is_share)))
    return wording.blank.join(parts)


def _pace(text: Text, pace: Slope, is_share: bool, wording: Wording) -> str:
    low, middle, high = (_size(round(value), is_share) for value in (pace.low, pace.middle, pace.high))
    return wording.say(text, low=low, middle=middle, high=high)


def _over(shown: SeenSeries, shape: SeriesShape, wording: Wording) -> str:
    times, total = shown.column.times, shown.column.total
    of = "" if total is None or shown.column.is_share else wording.say(texts.OF, total=format_size(total))
    if not times:
        return wording.say(texts.SAMPLES, of=of, samples=shape.samples)
    return wording.say(texts.OVER, of=of, samples=shape.samples, span=_span(times[shape.end - 1] - times[shape.start], wording))


def _whose(shown: SeenSeries, wording: Wording) -> str:
    column = shown.column
    if column.of == "process" and column.process is not None:
        program = (column.name or "").replace("\\", "/").rpartition("/")[2][:_LONGEST_NAME]
        return wording.say(texts.PROCESS, pid=column.process) + (wording.aside(program) if program else "")
    return wording.say(texts.CARD, card=column.card or "0")


def _size(size: int, is_share: bool) -> str:
    return format_share(size / 100_000) if is_share else format_size(size)


def _span(seconds: float, wording: Wording) -> str:
    if seconds < 120:
        return wording.say(texts.SECONDS, n=round(seconds))
    return wording.say(texts.MINUTES, n=round(seconds / 60)) if seconds < 7200 else wording.say(texts.HOURS, n=f"{seconds / 3600:.1f}")


def _chart(shaped: Sequence[tuple[SeenSeries, SeriesShape]], wording: Wording) -> Iterator[Block]:
    """Yield the courses of the first series and of those on its clock, with the size of the card and where the run failed."""
    first, shape = shaped[0]
    together = [shown for shown, _ in shaped if _axis_of(shown) == _axis_of(first) and not shown.column.is_share]
    curves = [Curve(_whose(shown, wording), _points(shown, first)) for shown in together[:_CURVES] if len(shown.column.used) > 1]
    if not curves or first.column.is_share:
        return
    totals = {shown.column.total for shown in together[:_CURVES]}
    total = totals.pop() if len(totals) == 1 else None
    unit, _ = _unit(first)
    failed = first.failed_at if first.column.times else None
    yield Curves(
        wording.say(texts.IN_USE_OVER_TIME),
        wording.say(texts.BY_TIME[unit]),
        tuple(curves),
        limit=None if total is None else Limit(wording.say(texts.CARD_SIZE), total),
        failure=None if failed is None else Moment(_place(failed, first), wording.say(texts.FAILURE)),
        phases=tuple(_phases(first, shape, wording)) if len(curves) == 1 else (),
    )


def _axis_of(shown: SeenSeries) -> tuple[str, str, bool]:
    """Return what two series must share to stand on one axis."""
    column = shown.column
    return (column.source if column.clock == "none" or not column.times else "", column.clock, bool(column.times))


def _unit(shown: SeenSeries) -> tuple[str, float]:
    """Return the unit of the axis, and how many seconds it has; samples where there are no times."""
    times = shown.column.times
    if not times:
        return "sample", 1.0
    span = times[-1] - times[0]
    return ("s", 1.0) if span < 120 else ("min", 60.0) if span < 7200 else ("h", 3600.0)


def _place(time: float, first: SeenSeries) -> float:
    return (time - first.column.times[0]) / _unit(first)[1]


def _points(shown: SeenSeries, first: SeenSeries) -> tuple[tuple[float, int | None], ...]:
    """Return the course of a series on the axis of the first, at no more places than a chart has."""
    times, used = shown.column.times, shown.column.used
    places = [_place(time, first) for time in times] if times else [float(at) for at in range(len(used))]
    return tuple(reduced(clean_points(list(zip(places, used)))))


def _phases(shown: SeenSeries, shape: SeriesShape, wording: Wording) -> Iterator[Stretch]:
    """Yield what came before the work, the work, and what came after it, where there is more than one of them."""
    last = len(shown.column.used) - 1
    if shape.start == 0 and shape.end > last:
        return
    edges = [0, shape.start, min(shape.end, last), last]
    places = [_place(shown.column.times[at], shown) if shown.column.times else float(at) for at in edges]
    named = (texts.LOADING, texts.WORK, texts.GIVEN_BACK if shape.given_back else texts.AFTERWARDS)
    for start, end, name in zip(places, places[1:], named):
        if end > start:
            yield Stretch(start, end, wording.say(name))


def course(used: Sequence[int | None]) -> tuple[int, ...]:
    """Return the highest of each piece of a series, of a few hundred pieces; what is not known is what was known before."""
    count = min(_POINTS, len(used))
    out: list[int] = []
    for at in range(count):
        known = [size for size in used[len(used) * at // count : len(used) * (at + 1) // count] if size is not None]
        out.append(max(known) if known else out[-1] if out else 0)
    return tuple(out)
