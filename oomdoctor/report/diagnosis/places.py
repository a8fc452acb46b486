"""Where a message stands and who printed it, in words."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.event import Event, Place
from oomdoctor.case.incident import Incident
from oomdoctor.report.wording.texts import say

_RANKS = 3


def where(event: Event, lang: str) -> str:
    """`train.log:1204, rank 3`: where a message stands and who wrote it."""
    parts = [at(event.place, lang)]
    if event.rank is not None:
        parts.append(say("rank", lang, n=event.rank))
    if event.time:
        parts.append(event.time)
    return ("，" if lang == "zh" else ", ").join(parts)


def at(place: Place, lang: str) -> str:
    """`train.log:1204`, or how far from the end, or the byte, whatever is known."""
    name = place.source if place.source not in ("", "-") else say("input", lang)
    if place.line is not None:
        return f"{name}:{place.line}"
    if place.from_end == 0:
        back = say("at-end", lang)
    elif place.from_end is not None:
        back = say("from-end-1" if place.from_end == 1 else "from-end", lang, n=place.from_end)
    else:
        back = say("byte", lang, n=place.offset)
    return f"{name}（{back}）" if lang == "zh" else f"{name} ({back})"


def repeated(incident: Incident, lang: str) -> str:
    """`The same on ranks 0, 1, 2 and 5 more; seen 16 times in all.`"""
    ranks = {*incident.ranks, *(event.rank for event in incident.repeats if event.rank is not None)} - {incident.root.rank}
    times = max(incident.count, len(incident.repeats) + 1)
    if ranks and times > len(ranks) + 1:
        return say("same-both", lang, ranks=_ranks(sorted(ranks), lang), n=times)
    if ranks:
        return say("same-ranks", lang, ranks=_ranks(sorted(ranks), lang))
    return say("same-times", lang, n=times) if times > 1 else ""


def _ranks(ranks: Sequence[int], lang: str) -> str:
    if len(ranks) == 1:
        return say("rank", lang, n=ranks[0])
    comma = "、" if lang == "zh" else ", "
    shown = comma.join(map(str, ranks[:_RANKS]))
    if len(ranks) > _RANKS:
        return say("ranks-more", lang, list=shown, n=len(ranks) - _RANKS)
    return say("ranks", lang, list=shown)
