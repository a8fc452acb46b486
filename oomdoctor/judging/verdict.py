"""The one place where a verdict is made: from a run's messages, or else how its logs end; and what is left of it if not all was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.case import Verdict
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Value
from oomdoctor.case.incident import Incident
from oomdoctor.judging.incidents import as_counted, decide_verdict, find_incidents
from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.parse.reading import SourceEvents
from oomdoctor.reading.lines import tagged
from oomdoctor.reading.progress import went_on
from oomdoctor.reading.survival import ended_well, outlived, was_handled

_PROGRESS_STEPS = 2
_OTHER = frozenset({Kind.LOOK_ALIKE, Kind.KERNEL_RESOURCE, Kind.CONSEQUENCE})
_SOON = 2 << 10
"""What a warning names follows it within this many bytes."""


class Judgement(Struct, frozen=True):
    """The conclusion drawn from the logs of one run."""

    events: Sequence[Event]
    """Their messages, as interpreted from what is around them."""
    incidents: tuple[Incident, ...]
    verdict: Verdict
    facts: Mapping[str, Value] = {}
    """What the ends of the logs show: `log.last_error`, the error that is not a memory failure."""


def decide(events: Sequence[Event], reads: Sequence[SourceEvents], tree: LexiconNode) -> Judgement:
    """Return what the messages of one run (`events`, from `reads`) say about memory, and which failure came first."""
    judged = as_counted(_named_by_warning(events, tree))
    incidents = find_incidents(judged, LogProgress(judged, reads, tree)) if judged else ()
    decided = decide_verdict(incidents)
    if not any(read.source.size or read.events for read in reads):
        return Judgement(judged, incidents, replace(decided, certainty=Certainty.POSSIBLE, reason="nothing-read"))
    if not incidents:
        return Judgement(judged, incidents, decided)
    error = incidents[0].root.text if incidents[0].kind is Kind.OTHER_ERROR else None
    return Judgement(judged, incidents, decided, {} if error is None else {"log.last_error": error})


def _named_by_warning(events: Sequence[Event], tree: LexiconNode) -> list[Event]:
    """Return the events; the last warning of a refused allocation is a failure if an error that names nothing soon follows it."""
    warned = [event for event in events if event.kind.is_memory and event.outcome is Outcome.PRESSURE and "requested_bytes" in event.fields]
    if not warned or any(event.is_failure or event.kind in _OTHER for event in events):
        return list(events)
    last = warned[-1]
    end = last.place.offset + len(last.text)
    behind = [
        event
        for event in events
        if event.kind is Kind.OTHER_ERROR and event.place.source == last.place.source and event.place.offset > last.place.offset
    ]
    if (
        not behind
        or behind[0].place.offset - end > _SOON
        or not any(any(tagged(event.text, tree).of(("unnamed-error",))) for event in behind)
    ):
        return list(events)
    return [replace(event, outcome=Outcome.FAILURE, certainty=Certainty.LIKELY) if event is last else event for event in events]


def verdict_of_a_part(decided: Verdict) -> Verdict:
    """Return the verdict if not all of the logs could be read: what is not known to have failed may have failed."""
    if decided.memory_failure != "no":
        return decided
    if decided.reason == "nothing-read":
        return replace(decided, memory_failure="possible")
    return replace(decided, memory_failure="possible", certainty=Certainty.POSSIBLE, reason="not-read-whole", settle="unread-rest")


def verdict_of_told(event: Event) -> Verdict:
    """Return the verdict on what a person reports, which is never certain: no log states it."""
    certainty = event.certainty or Certainty.POSSIBLE
    return Verdict(
        memory_failure="possible" if certainty is Certainty.POSSIBLE else "yes", kind=event.kind, certainty=certainty, reason="told"
    )


class LogProgress:
    """What the logs of a run show after a failure."""

    def __init__(self, events: Sequence[Event], reads: Sequence[SourceEvents], tree: LexiconNode) -> None:
        self._reads = {read.source.name: read for read in reads}
        self._tree = tree
        self._told = [event for event in events if event.kind is not Kind.CONTEXT and event.outcome is Outcome.FAILURE]

    def went_on(self, event: Event) -> bool:
        """Return whether the program handled a failure, or an error, and kept working."""
        after = self._after(event)
        if event.kind is Kind.OTHER_ERROR:
            return outlived(event.text, self._until_next_failure(event, after), self._tree) or self.ended_well(event)
        before = self._reads[event.place.source].before.get(event.place.offset)
        is_ahead = before is not None and went_on(before, after, _PROGRESS_STEPS)
        return is_ahead or (event.caught and was_handled(event.text, after, self._tree))

    def ended_well(self, event: Event) -> bool:
        """Return whether the log says at its end that all went well, and reports no failure after this one."""
        place = event.place
        later = any(other.place.source == place.source and other.place.offset > place.offset for other in self._told)
        return not later and ended_well(self._after(event), self._tree)

    def _after(self, event: Event) -> bytes:
        read = self._reads[event.place.source]
        end = event.place.offset + len(event.text.encode("utf-8", "replace")) - (read.source.size - len(read.last))
        return read.last[max(0, end) :]

    def _until_next_failure(self, event: Event, after: bytes) -> bytes:
        """Return the text after an error and before the next failure in the same log."""
        place = event.place
        start = place.offset + len(event.text.encode("utf-8", "replace"))
        later = (
            other.place.offset - start for other in self._told if other.place.source == place.source and other.place.offset > place.offset
        )
        return after[: max(0, min(later, default=len(after)))]
