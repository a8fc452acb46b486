"""Memory over steps as the log itself prints it: each figure that stands there again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.case import Case
from oomdoctor.case.event import Event, Kind
from oomdoctor.case.incident import Incident
from oomdoctor.reading.progress import find_last_steps

_FIGURES = (
    "reserved_bytes", "allocated_bytes", "peak_reserved_bytes", "peak_allocated_bytes", "active_bytes", "peak_active_bytes", "used_bytes",
    "peak_used_bytes",
)  # fmt: skip
"""Figures of a card, those first that tell most."""
_FEWEST = 4
"""Lines with a figure, below which there is no course to see."""
_MOST = 8

_Key = tuple[str, "int | None"]


class PrintedCurve(Struct, frozen=True):
    """One figure of one process: where, and how many bytes."""

    figure: str
    rank: int | None
    points: tuple[tuple[float, int], ...]


class PrintedMemory(Struct, frozen=True):
    """What a log prints of a card's memory, and where it failed on the same axis."""

    is_by_step: bool
    """Places are training steps; else lines of the log."""
    curves: tuple[PrintedCurve, ...]
    total: int | None
    """Bytes of the card, as the failure states it."""
    failed_at: float | None


class _Place(Struct, frozen=True):
    """A line with a figure."""

    line: int
    step: int | None
    event: Event


def printed_memory(case: Case) -> PrintedMemory | None:
    """Return what the log prints of the card's memory over its steps; None where it does not often enough.

    Of several sources the one with most such lines is taken. Where steps are missing or begin anew, lines of the log are the axis.
    """
    incident = next((incident for incident in case.incidents if incident.kind.is_memory), None)
    failure = None if incident is None else incident.root
    places = _of_one_source(case.events)
    steps = [place.step for place in places]
    known = [step for step in steps if step is not None]
    is_by_step = len(known) == len(steps) and all(before <= after for before, after in zip(known, known[1:]))
    curves = list(_chosen(_curves(places, is_by_step=is_by_step), None if failure is None else failure.rank))
    if not curves:
        return None
    total = None if failure is None else failure.size("total_bytes")
    return PrintedMemory(
        is_by_step, tuple(curves), total, None if incident is None else _failed_at(incident, places, is_by_step=is_by_step)
    )


def _of_one_source(events: Sequence[Event]) -> list[_Place]:
    """Return the lines with figures of the source that has most of them, in their order."""
    by_source: dict[str, list[_Place]] = {}
    for event in events:
        if event.kind is Kind.CONTEXT and event.place.line is not None and any(event.size(name) for name in _FIGURES):
            by_source.setdefault(event.place.source, []).append(_Place(event.place.line, _step(event), event))
    most = max(by_source.values(), key=lambda places: len(places), default=[])
    return sorted(most, key=lambda place: place.line)


def _step(event: Event) -> int | None:
    """Return the training step of a line: a field of its message, else the counter that stands on it."""
    step = event.fields.get("step")
    if isinstance(step, int):
        return step
    counted = find_last_steps(event.text.encode("utf-8", "replace"))
    return next(iter(counted.values()), None)


def _curves(places: Sequence[_Place], *, is_by_step: bool) -> Mapping[_Key, list[tuple[float, int]]]:
    curves: dict[_Key, list[tuple[float, int]]] = {}
    for place in places:
        at = float(place.step if is_by_step and place.step is not None else place.line)
        for figure in _FIGURES:
            size = place.event.size(figure)
            if size is not None and size >= 0:
                curves.setdefault((figure, _rank(place.event)), []).append((at, size))
    return {key: points for key, points in curves.items() if len(points) >= _FEWEST}


def _rank(event: Event) -> int | None:
    stated = event.fields.get("rank")
    return event.rank if event.rank is not None else stated if isinstance(stated, int) else None


def _chosen(curves: Mapping[_Key, list[tuple[float, int]]], failed: int | None) -> Iterator[PrintedCurve]:
    """Yield all figures of one process; of several processes one figure each, the one that failed first, then the highest."""
    ranks = {rank for _, rank in curves}
    if len(ranks) < 2:
        yield from (PrintedCurve(figure, rank, tuple(points)) for (figure, rank), points in list(curves.items())[:_MOST])
        return
    shown = next(figure for figure in _FIGURES if any(figure == name for name, _ in curves))
    by_rank = [(rank, points) for (figure, rank), points in curves.items() if figure == shown]
    by_rank.sort(key=lambda entry: (entry[0] != failed, -max(size for _, size in entry[1]), entry[0] or 0))
    yield from (PrintedCurve(shown, rank, tuple(points)) for rank, points in by_rank[:_MOST])


def _failed_at(incident: Incident, places: Sequence[_Place], *, is_by_step: bool) -> float | None:
    """Return where the failure stands: its line; or the steps that had passed, if they are counted as those of the printed lines are."""
    place = incident.root.place
    if place.line is None or place.source != places[0].event.place.source:
        return None
    if not is_by_step:
        return float(place.line)
    steps = [entry.step for entry in places if entry.line < place.line and entry.step is not None]
    if not steps:
        return None
    passed = incident.steps_passed
    # A counter of micro batches stands at a multiple of the updates.
    return float(passed if passed is not None and steps[-1] <= passed < 2 * steps[-1] else steps[-1])
