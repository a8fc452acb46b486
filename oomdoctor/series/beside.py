"""Columns beside each other: who came to a card, and which card holds more than the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct

from oomdoctor.case.recorded.series import SeenSeries, SeriesColumn
from oomdoctor.findings.courses import FEWEST
from oomdoctor.series.own import OURS
from oomdoctor.units import MIB

_MUCH = 0.05
"""Of a card, what somebody must take to matter."""
_LEAST = 256 * MIB
_IDLE = 0.25
_EARLY = 0.1
"""What is there in the first tenth was there before."""
_HIGHER = 0.1
_FEWEST_AFTER = 3


class Newcomer(Struct, frozen=True, kw_only=True):
    """Somebody who came to a card while others were on it."""

    card: str
    process: int | None
    """None where only the card's figure and the run's own are known."""
    name: str | None
    size: int
    """Bytes that came with it."""
    at: int
    """Sample at which it was first seen."""
    own: int
    """Bytes that those who were there held then."""


class HigherCard(Struct, frozen=True, kw_only=True):
    """One card that holds more than the others of the run."""

    card: str
    size: int
    others: int
    """The median of the others."""
    count: int
    """How many others there are."""


def newcomers(columns: Sequence[SeriesColumn]) -> Iterator[Newcomer]:
    """Yield who came to a card, of the columns of one file."""
    for card in dict.fromkeys(column.card for column in columns if column.of == "process"):
        processes = [column for column in columns if column.of == "process" and column.card == card]
        whole = next((column for column in columns if column.of == "card" and column.card == card), None)
        ours = next((column for column in processes if column.name == OURS and column.process is None), None)
        if whole is not None and ours is not None:
            yield from _beside_ours(card or "0", whole, ours)
        elif ours is None:
            yield from _new_processes(card or "0", processes)


def _beside_ours(card: str, whole: SeriesColumn, ours: SeriesColumn) -> Iterator[Newcomer]:
    """Yield a rise of what others hold that stays, while the run's own use does not fall by as much."""
    if len(whole.used) != len(ours.used):
        return
    known = [(at, used - own, own) for at, (used, own) in enumerate(zip(whole.used, ours.used)) if used is not None and own is not None]
    if len(known) < FEWEST:
        return
    others = [other for _, other, _ in known]
    least = max(_LEAST, _MUCH * (whole.total or max(used or 0 for used in whole.used)))
    for number in range(FEWEST // 2, len(known) - _FEWEST_AFTER + 1):
        before, after = median(others[max(0, number - 5) : number]), min(others[number : number + _FEWEST_AFTER])
        if after - before > least and known[number - 1][2] > 0:
            at, _, own = known[number]
            yield Newcomer(card=card, process=None, name=None, size=round(after - before), at=at, own=own)
            return


def _new_processes(card: str, processes: Sequence[SeriesColumn]) -> Iterator[Newcomer]:
    """Yield processes that are listed only after others had been for a while, where times tell when."""
    seen = [(column, column.times[0], column.times[-1]) for column in processes if column.times and any(column.used)]
    if len(seen) < 2:
        return
    begin, end = min(first for _, first, _ in seen), max(last for _, _, last in seen)
    for column, first, last in seen:
        at = first - begin
        there = [
            other for other, its_first, its_last in seen
            if other is not column and its_first < first and its_last >= first and its_first - begin <= _EARLY * (end - begin)
        ]  # fmt: skip
        size = max(used or 0 for used in column.used)
        own = sum(_at(other, first) for other in there)
        if there and at > _EARLY * (end - begin) and last > first and size > max(_LEAST, _MUCH * (column.total or own)):
            place = sum(time < first for time in there[0].times)
            yield Newcomer(card=card, process=column.process, name=column.name, size=size, at=place, own=own)


def _at(column: SeriesColumn, moment: float) -> int:
    """Return what a column shows at a moment: its last sample until then."""
    return next((used or 0 for time, used in zip(reversed(column.times), reversed(column.used)) if time <= moment), 0)


def higher_card(seen: Sequence[SeenSeries]) -> HigherCard | None:
    """Return the card that held more than the others in the later half of the work; None where they are alike."""
    cards = [
        (series.column.card or "0", _usual(series), series.column.total)
        for series in seen
        if series.column.of == "card" and series.shape is not None and not series.column.is_share
    ]
    if len({card for card, _, _ in cards}) != len(cards) or len({total for _, _, total in cards}) > 1 or len(cards) < 2:
        return None
    card, size, _ = max(cards, key=lambda entry: entry[1])
    # Cards that do nothing are none of the run's.
    others = [usual for name, usual, _ in cards if name != card and usual >= _IDLE * size]
    if not others or size - median(others) <= max(_LEAST, _HIGHER * median(others)):
        return None
    usual = round(median(others))
    return HigherCard(card=card, size=size, others=usual, count=len(others))


def _usual(seen: SeenSeries) -> int:
    shape = seen.shape
    if shape is None:
        return 0
    later = [used for used in seen.column.used[(shape.start + shape.end) // 2 : shape.end] if used is not None]
    return round(median(later)) if later else 0
