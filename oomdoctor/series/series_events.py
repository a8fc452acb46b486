"""What series show, as events (rules/observations).

They say what was recorded and never that a run failed. The most telling come last: of facts that several events state the last counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.event import Event, Value
from oomdoctor.case.gap import Gap
from oomdoctor.case.recorded.series import Clock, SeenSeries, SeriesColumn, SeriesShape
from oomdoctor.findings.courses import FEWEST
from oomdoctor.parse.observer import ObservedFile, Observer
from oomdoctor.series.beside import higher_card, newcomers
from oomdoctor.series.own import OURS
from oomdoctor.series.shape import find_shape

_ORDER = ("climb", "unclear", "saw-tooth", "steady", "staircase", "leak")
_SHAPES = {"steady": "series-steady", "saw-tooth": "series-up-and-down", "staircase": "series-staircase", "leak": "series-leak"}
_WHOLE = 100_000
"""Thousandths of a percent."""
_LONG = 10
_COARSE_S = 10.0
_FEW = f"fewer than {FEWEST} samples of work: too few to identify a pattern"
_UNCLEAR = "neither steady nor climbing throughout: no pattern can be identified"
_CLIMB = "it climbs from an empty card to its last sample: either loading or growth"
_COARSE = "fsamples are {seconds:.0f} s apart: a short peak may fall between two"
_NO_TIMES = "no times are recorded: the growth rate is unknown"
_OUTSIDE = "the log's failure is outside the time range of this series"
_MISSING = "{count} of {all} samples have no value"


class Judged(Struct, frozen=True):
    """Series with their shapes, the events of each file, and what cannot be told."""

    seen: tuple[SeenSeries, ...]
    files: tuple[ObservedFile, ...]
    gaps: tuple[Gap, ...]


def judge_series(see: Observer, columns: Sequence[SeriesColumn], failures: Sequence[tuple[float, Clock]] = ()) -> Judged:
    """Judge columns, each file by itself; `failures` are the moments of the log's failures, by their clock."""
    seen: list[SeenSeries] = []
    gaps: list[Gap] = []
    files: list[ObservedFile] = []
    for source in dict.fromkeys(column.source for column in columns):
        of_file = [column for column in columns if column.source == source]
        judged = [_seen(column, failures) for column in of_file]
        events = (*_shapes(see, judged), *_beside(see, of_file, judged))
        files += [ObservedFile(name=source, events=events)] if events else []
        gaps += dict.fromkeys(Gap(source, why) for series in judged for why in _unknown(series, failures))
        seen += judged
    return Judged(tuple(seen), tuple(files), tuple(gaps))


def _seen(column: SeriesColumn, failures: Sequence[tuple[float, Clock]]) -> SeenSeries:
    """Return a column with its shape up to the failure, where the failure lies within its times."""
    failed_at = next((time for time, clock in failures if _covers(column, time, clock)), None)
    interval = (column.times[-1] - column.times[0]) / max(1, len(column.times) - 1) if column.times else 0.0
    return SeenSeries(column=column, shape=find_shape(column, None if failed_at is None else failed_at + interval), failed_at=failed_at)


def _covers(column: SeriesColumn, time: float, clock: Clock) -> bool:
    return bool(column.times) and clock == column.clock != "none" and column.times[0] <= time <= column.times[-1] + 60


def _unknown(series: SeenSeries, failures: Sequence[tuple[float, Clock]]) -> Iterator[str]:
    """Yield what cannot be told of a series."""
    column, shape = series.column, series.shape
    missing = sum(used is None for used in column.used)
    if missing:
        yield _MISSING.format(count=missing, all=len(column.used))
    if shape is None:
        if column.of == "card":
            yield _FEW
        return
    if shape.name in ("unclear", "climb"):
        yield _UNCLEAR if shape.name == "unclear" else _CLIMB
    if shape.interval is not None and shape.interval >= _COARSE_S:
        yield _COARSE.format(seconds=shape.interval)
    if shape.name == "leak" and not column.times and not column.steps:
        yield _NO_TIMES
    if failures and column.times and any(clock == column.clock for _, clock in failures) and series.failed_at is None:
        yield _OUTSIDE


def _shapes(see: Observer, seen: Sequence[SeenSeries]) -> Iterator[Event]:
    """Yield the shape of each card: of what the run holds of it, where that is known; of processes where no card is shown."""
    own = {series.column.card: series for series in seen if series.column.of == "process" and series.column.name == OURS}
    cards = [own.get(series.column.card, series) for series in seen if series.column.of == "card"]
    cards = cards or [series for series in seen if series.column.of == "process"]
    shaped = [(series.column, series.shape) for series in cards if series.shape is not None]
    for column, shape in sorted(shaped, key=lambda entry: (_ORDER.index(entry[1].name), entry[1].last)):
        figures: dict[str, float | None]
        if shape.name in ("steady", "saw-tooth"):
            figures = {"lowest": shape.lowest, "top": shape.usual_highest}
        else:
            pace = shape.per_hour or shape.per_step
            figures = {"from": shape.first, "to": shape.last, "pace": None if pace is None else pace.middle}
        if shape.name in _SHAPES:
            yield see.event(_SHAPES[shape.name], {**_whose(column), **_counts(shape), **_sizes(column, figures)})
        if shape.last_climb is not None:
            leap = _sizes(column, {"leap": shape.last_climb, "before": shape.usual_highest})
            yield see.event("series-last-climb", {**_whose(column), **leap})


def _whose(column: SeriesColumn) -> dict[str, Value | None]:
    process = column.process if column.of == "process" else None
    total = None if column.is_share else column.total
    return {"series_of": _name(column.card) if process is None else process, "series_process": process, "series_of_bytes": total}


def _counts(shape: SeriesShape) -> dict[str, Value | None]:
    per = "hour" if shape.per_hour is not None else "step" if shape.per_step is not None else None
    return {"series_samples": shape.samples, "series_rises": shape.rises if shape.name == "staircase" else None, "series_per": per}


def _sizes(column: SeriesColumn, figures: Mapping[str, float | None]) -> dict[str, Value | None]:
    """Return figures of a column as fields: bytes, or shares of the card where a monitor tells no more."""
    known = {name: figure for name, figure in figures.items() if figure is not None}
    if column.is_share:
        return {f"series_{name}_share": round(figure / _WHOLE, 6) for name, figure in known.items()}
    return {f"series_{name}_bytes": round(figure) for name, figure in known.items()}


def _beside(see: Observer, columns: Sequence[SeriesColumn], seen: Sequence[SeenSeries]) -> Iterator[Event]:
    for other in newcomers(columns):
        sizes = {"series_newcomer_bytes": other.size, "series_own_bytes": other.own}
        yield see.event("series-newcomer", {"series_newcomer": other.process, "series_of": _name(other.card), **sizes})
    higher = higher_card(seen)
    if higher is not None:
        sizes = {"series_higher_bytes": higher.size, "series_other_bytes": higher.others}
        yield see.event("series-higher-card", {"series_of": _name(higher.card), "series_others": higher.count, **sizes})


def _name(card: str | None) -> int | str:
    """Return the name of a card as a file says it, without what could be more than a name."""
    word = "".join(char if char.isascii() and (char.isalnum() or char in "-:.") else "_" for char in (card or "")[:48]) or "0"
    return int(word) if word.isdecimal() and len(word) < _LONG else word
