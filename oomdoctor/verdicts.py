"""The verdict where no known message decides it: how a log ends, what of it was not read, what somebody says; whether a run went on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from oomdoctor.case.case import Verdict
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Value
from oomdoctor.parse.ending import find_log_ending, speaks_of_a_card, was_handled
from oomdoctor.parse.progress import went_on
from oomdoctor.parse.prose import is_killed
from oomdoctor.parse.reading import SourceEvents

if TYPE_CHECKING:
    from oomdoctor.case.expected import Told

_PROGRESS_STEPS = 2
_UNNAMED = (
    r"API call failed|\b(?:CUDA|HIP|NPU|XPU|driver|internal|unknown|fatal) error\b|INTERNAL ASSERT"
    r"|terminate called|Segmentation fault|\bAborted\b|core dumped|panicked|^Traceback"
)
"""An error that tells where a program broke off and not why."""
_OTHER = frozenset({Kind.LOOK_ALIKE, Kind.KERNEL_RESOURCE, Kind.CONSEQUENCE})
_SOON = 2 << 10
"""What a warning names follows it within so many bytes."""


def verdict_of_ending(decided: Verdict, log: dict[str, Value], reads: Sequence[SourceEvents]) -> tuple[Verdict, dict[str, Value]]:
    """Return the verdict and the facts where no message is known: a log that ends with an error is not called fine."""
    endings = [ending for read in reads if (ending := find_log_ending(read.last)) is not None]
    if not endings:
        return decided, log
    ending = next((ending for ending in endings if not ending.survived), endings[0])
    if ending.survived:
        return Verdict(memory_failure="no", kind=Kind.NONE, certainty=Certainty.LIKELY, survived=True, reason="survived"), log
    log = {**log, "log.last_error": ending.text}
    if not ending.speaks_of_memory:
        return replace(decided, certainty=Certainty.LIKELY, reason="other-error"), log
    kind = Kind.DEVICE_OOM if ending.on_the_device else Kind.HOST_OOM
    possible = Verdict(
        memory_failure="possible", kind=kind, certainty=Certainty.POSSIBLE, reason="unknown-memory-error", settle="unknown-error"
    )
    return possible, log


def named_by_warning(events: Sequence[Event], reads: Sequence[SourceEvents]) -> list[Event]:
    """Return the events; the last warning of a refused allocation is a failure where a log soon ends with an error that names nothing."""
    warned = [event for event in events if event.kind.is_memory and event.outcome is Outcome.PRESSURE and "requested_bytes" in event.fields]
    if not warned or any(event.is_failure or event.kind in _OTHER for event in events):
        return list(events)
    last = warned[-1]
    read = next(read for read in reads if read.source.name == last.place.source)
    ending = find_log_ending(read.last) if read.source.size - last.place.offset - len(last.text) <= _SOON else None
    if ending is None or ending.survived or re.search(_UNNAMED, ending.text) is None:
        return list(events)
    return [replace(event, outcome=Outcome.FAILURE, certainty=Certainty.LIKELY) if event is last else event for event in events]


def verdict_of_a_part(decided: Verdict) -> Verdict:
    """Return the verdict where not all of the logs could be read: what is not known to have failed may have."""
    if decided.memory_failure != "no":
        return decided
    if decided.reason == "nothing-read":
        return replace(decided, memory_failure="possible")
    return replace(decided, memory_failure="possible", certainty=Certainty.POSSIBLE, reason="not-read-whole", settle="unread-rest")


def verdict_of_told(decided: Verdict, told: Told | None) -> Verdict:
    """Return the verdict on what somebody says: no log states it, so that it is possible and no more."""
    if told is None:
        return decided
    on_the_card = not is_killed(told.text) and (told.card is not None or speaks_of_a_card(told.text))
    kind = Kind.DEVICE_OOM if on_the_card else Kind.HOST_OOM
    return Verdict(memory_failure="possible", kind=kind, certainty=Certainty.POSSIBLE, reason="told")


def progress_after(reads: Sequence[SourceEvents]) -> Callable[[Event], bool]:
    """Return what tells of an event whether its log shows progress after it."""
    by_source = {read.source.name: read for read in reads}

    def progressed(event: Event) -> bool:
        read = by_source[event.place.source]
        before = read.before.get(event.place.offset)
        end = event.place.offset + len(event.text) - (read.source.size - len(read.last))
        after = read.last[max(0, end) :]
        return before is not None and (went_on(before, after, _PROGRESS_STEPS) or (event.caught and was_handled(after)))

    return progressed
