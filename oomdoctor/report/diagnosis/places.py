"""Where a message stands and who printed it, in words."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.event import Event, Kind, Place
from oomdoctor.case.incident import Incident
from oomdoctor.report.document import Row, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.wording import Wording

_RANKS = 3


def event_text(event: Event, wording: Wording) -> str:
    """Return a message as it was printed, or what was seen, in words."""
    return event.text if event.says is None else wording.say(event.says)


def event_place(event: Event, wording: Wording) -> str:
    """`train.log:1204, rank 3`: where a message stands and who wrote it."""
    parts = [place_text(event.place, wording)]
    if event.rank is not None:
        parts.append(wording.say(labels.RANK, n=event.rank))
    if event.time:
        parts.append(event.time)
    return wording.comma.join(parts)


def event_row(event: Event, wording: Wording) -> Row:
    """Return a line about a message: where it stands, and how it begins."""
    return Row(event_place(event, wording), clean_line(event_text(event, wording), 160), style=Style.CODE)


def place_text(place: Place, wording: Wording) -> str:
    """`train.log:1204`, or how far from the end, or the byte, whatever is known."""
    name = place.source if place.source not in ("", "-") else wording.say(labels.INPUT)
    if place.is_whole:
        return name
    if place.line is not None:
        return f"{name}:{place.line}"
    if place.from_end == 0:
        back = wording.say(labels.AT_END)
    elif place.from_end is not None:
        back = wording.count(labels.FROM_END, place.from_end)
    else:
        back = wording.say(labels.BYTE, n=place.offset)
    return name + wording.aside(back)


def repetition_text(incident: Incident, wording: Wording) -> str:
    """Say where else and how often a failure was seen: `The same on ranks 0, 1, 2 and 5 more; seen 16 times in all`."""
    ranks = {*incident.ranks, *(event.rank for event in incident.repeats if event.rank is not None)} - {incident.root.rank}
    # One kill of the host is reported by several messages: the killer, the launcher, the scheduler.
    times = incident.count if incident.kind is Kind.HOST_OOM else max(incident.count, len(incident.repeats) + 1)
    if ranks and times > len(ranks) + 1:
        return wording.say(labels.SAME_BOTH, ranks=_ranks(sorted(ranks), wording), n=times)
    if ranks:
        return wording.say(labels.SAME_RANKS, ranks=_ranks(sorted(ranks), wording))
    return wording.say(labels.SAME_TIMES, n=times) if times > 1 else ""


def _ranks(ranks: Sequence[int], wording: Wording) -> str:
    if len(ranks) == 1:
        return wording.say(labels.RANK, n=ranks[0])
    shown = wording.item_comma.join(map(str, ranks[:_RANKS]))
    if len(ranks) > _RANKS:
        return wording.say(labels.RANKS_MORE, list=shown, n=len(ranks) - _RANKS)
    return wording.say(labels.RANKS, list=shown)
