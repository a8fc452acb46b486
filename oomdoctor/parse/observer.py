"""Observations of a run -> events: what a recorder or the reader of a series observed is not text, and no text can be mistaken for it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.case import Source
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place, Value
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.rows.observations import quoted
from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.parse.reading import LogReader, SourceEvents
from oomdoctor.parse.traceback import find_traceback, whole_traceback

_LARGEST = 1 << 59
"""No memory size and no count exceeds this; evidence may be damaged, or crafted to do harm."""
_LONGEST = 400
_SOMEWHERE = Place("", 0, is_whole=True)


class ObservedFile(Struct, frozen=True, kw_only=True):
    """A file alongside the logs of a run: what was observed in it, and the text it contains, which is read like a log."""

    name: str
    events: tuple[Event, ...] = ()
    text: bytes = b""
    """If `events` are failures, the traceback recorded with them."""
    size: int = 0


class Observer:
    """Makes events from observations, using what rules/observations says about each kind."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def event(self, id: str, seen: Mapping[str, Value | None] | None = None) -> Event:
        """Return the event of an observation; fields that are None, and impossible figures, are left out. `rank` is its rank."""
        core = self._pack.observations[id]
        fields = {**core.set, **{name: kept for name, value in (seen or {}).items() if (kept := _plausible(value)) is not None}}
        rank = fields.pop("rank", None)
        says = None if core.says is None else quoted(core.says, fields)
        return Event(
            signature=id,
            kind=Kind(core.kind),
            certainty=None if core.certainty is None else Certainty(core.certainty),
            outcome=Outcome(core.outcome),
            place=_SOMEWHERE,
            text="" if says is None else says.en,
            says=says,
            fields=fields,
            rank=rank if isinstance(rank, int) else None,
        )


def read_observed(part: ObservedFile, reading: LogReader) -> SourceEvents:
    """Return the events of a file: those observed, then those stated by its text, whose lines are not lines of the file."""
    read = reading.read_one(part.name, part.text) if part.text else SourceEvents(Source(name=part.name, size=0))
    stated = [replace(event, place=Place(part.name, event.place.offset, is_whole=True)) for event in read.events]
    seen = [replace(event, place=Place(part.name, len(part.text) + number, is_whole=True)) for number, event in enumerate(part.events)]
    if part.text:
        computations = ComputationFinder(reading.pack.computations)
        seen = [_at_traceback(event, part.text, computations) if event.kind.is_memory else event for event in seen]
        read.tracebacks |= {event.place.offset: whole_traceback(part.text) for event in seen if event.is_failure}
    read.events = [*seen, *stated]
    read.source = replace(read.source, size=part.size or read.source.size)
    return read


def _at_traceback(event: Event, traceback: bytes, computations: ComputationFinder) -> Event:
    """Return an event with what its recorded traceback shows; if that shows no phase, the program may have stated one."""
    trace = find_traceback(traceback, b"", event.rank)
    return replace(event, phase=trace.phase or event.phase, frame=trace.frame, computes=computations.find(trace.text, traceback))


def _plausible(value: Value | None) -> Value | None:
    if isinstance(value, str):
        return " ".join(value.split())[:_LONGEST]
    return None if isinstance(value, int) and not 0 <= value < _LARGEST else value
