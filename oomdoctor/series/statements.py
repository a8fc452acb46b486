"""What series say, a line each, in the form that rules/signatures/watched-series.yaml reads.

So a series takes the way of every log: lines become events, and rules judge them, with examples that a person can read. The lines say
what was recorded and never that a run failed. The most telling come last: of facts that several lines state the last counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from oomdoctor.case.gap import Gap
from oomdoctor.case.recorded.series import Clock, SeenSeries, SeriesColumn, SeriesShape
from oomdoctor.series.beside import higher_card, newcomers
from oomdoctor.series.own import OURS
from oomdoctor.series.shape import FEWEST, find_shape

_PREFIX = "oomdoctor series: "
_ORDER = ("climb", "unclear", "saw-tooth", "steady", "staircase", "leak")
_COARSE_S = 10.0
_FEW = f"fewer than {FEWEST} samples of work: no shape can be told"
_UNCLEAR = "neither steady nor climbing on: no shape can be told"
_CLIMB = "it climbs from an empty card to its last sample: that may be loading or growth"
_COARSE = "samples lie {seconds:.0f} s apart: a short peak may stand between two"
_NO_TIMES = "no times are written: how fast it grows is not known"
_OUTSIDE = "the failure of the log lies outside the times of this series"
_MISSING = "{count} of {all} samples have no value"


class Judged(Struct, frozen=True):
    """Series with their shapes, the lines that state them, and what cannot be told."""

    seen: tuple[SeenSeries, ...]
    texts: tuple[tuple[str, bytes], ...]
    """For each file that says something its name and its lines."""
    gaps: tuple[Gap, ...]


def judge_series(columns: Sequence[SeriesColumn], failures: Sequence[tuple[float, Clock]] = ()) -> Judged:
    """Judge columns, each file by itself; `failures` are the moments of the log's failures, by their clock."""
    seen: list[SeenSeries] = []
    gaps: list[Gap] = []
    texts = []
    for source in dict.fromkeys(column.source for column in columns):
        of_file = [column for column in columns if column.source == source]
        judged = [_seen(column, failures) for column in of_file]
        lines = [*_lines(judged), *_beside_lines(of_file, judged)]
        if lines:
            texts.append((source, ("\n".join(lines) + "\n").encode("utf-8", "replace")))
        gaps += dict.fromkeys(Gap(source, why) for series in judged for why in _unknown(series, failures))
        seen += judged
    return Judged(tuple(seen), tuple(texts), tuple(gaps))


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


def _lines(seen: Sequence[SeenSeries]) -> Iterator[str]:
    """Yield a line for each shape of a card: of what the run holds of it, where that is known; of processes where no card is shown."""
    own = {series.column.card: series for series in seen if series.column.of == "process" and series.column.name == OURS}
    cards = [own.get(series.column.card, series) for series in seen if series.column.of == "card"]
    cards = cards or [series for series in seen if series.column.of == "process"]
    shaped = [(series.column, series.shape) for series in cards if series.shape is not None]
    for column, shape in sorted(shaped, key=lambda entry: (_ORDER.index(entry[1].name), entry[1].last)):
        yield from _shape_lines(column, shape)


def _shape_lines(column: SeriesColumn, shape: SeriesShape) -> Iterator[str]:
    whose = _whose(column)
    unit = "ppm" if column.is_share else "bytes"
    of = "" if column.total is None or column.is_share else f" of {column.total}"
    samples = f"over {shape.samples} samples"
    if shape.name == "steady":
        yield f"{_PREFIX}{whose} stayed between {shape.lowest} and {shape.usual_highest}{of} {unit} {samples}"
    elif shape.name == "saw-tooth":
        yield f"{_PREFIX}{whose} went up and down between {shape.lowest} and {shape.usual_highest}{of} {unit} {samples}"
    elif shape.name == "staircase":
        yield f"{_PREFIX}{whose} climbed in {shape.rises} steps and stood between, from {shape.first} to {shape.last}{of} {unit} {samples}"
    elif shape.name == "leak":
        yield f"{_PREFIX}{whose} climbed on, from {shape.first} to {shape.last}{of} {unit} {samples}{_pace(shape)}"
    if shape.last_climb is not None:
        yield f"{_PREFIX}{whose} leapt by {shape.last_climb} {unit} in its last samples, from {shape.usual_highest} at most before{of}"


def _pace(shape: SeriesShape) -> str:
    """Return how fast something grows, with its range."""
    for pace, unit in ((shape.per_hour, "an hour"), (shape.per_step, "a step")):
        if pace is not None:
            return f": {round(pace.middle)} {unit}, between {round(pace.low)} and {round(pace.high)}"
    return ""


def _beside_lines(columns: Sequence[SeriesColumn], seen: Sequence[SeenSeries]) -> Iterator[str]:
    for other in newcomers(columns):
        who = "others" if other.process is None else f"process {other.process}"
        yield f"{_PREFIX}{who} came to card {_word(other.card)} with {other.size} bytes when {other.own} were in use by those before"
    higher = higher_card(seen)
    if higher is not None:
        yield f"{_PREFIX}card {_word(higher.card)} held {higher.size} bytes, the {higher.count} others {higher.others} in the middle"


def _whose(column: SeriesColumn) -> str:
    if column.of == "process" and column.process is not None:
        return f"process {column.process}"
    return f"card {_word(column.card or '0')}"


def _word(name: str) -> str:
    """Return a name as one word of plain characters: a file says it."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-:.") else "_" for char in name[:48]) or "0"
