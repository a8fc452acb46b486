"""What was damaged or lost of a store since its last triage ended, against how many jobs each part held then."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from oomdoctor.triage.store.known_groups import GROUPS_LOST, are_lost
from oomdoctor.triage.store.parts import ALL_PARTS, Parts
from oomdoctor.triage.store.sealed import keep_sealed, read_sealed

_FILE = "held.json"
_NAMED = 4
_LIST_LOST = f"{_FILE} is damaged: whether a part is missing is unknown"


class DamagedPart(Struct, frozen=True):
    """A part that is not what it was."""

    number: int
    how: str
    held: int | None
    """How many jobs it held when the last triage ended; None where nobody knows."""

    def __str__(self) -> str:
        """Return its name and what is wrong with it."""
        return f"{self.number:02x} {self.how}"


def note_held(store: str) -> None:
    """Keep how many jobs each part holds. Raise OSError."""
    keep_sealed(os.path.join(store, _FILE), encode(_jobs_in(store)))


def find_damage(store: str, numbers: Iterable[int] = ALL_PARTS) -> list[DamagedPart]:
    """Return the parts, of some, that are damaged, missing, or hold fewer jobs than when the last triage ended."""
    parts, held = Parts(os.path.join(store, "parts")), _held(store) or {}
    return [
        DamagedPart(number, how, held.get(number)) for number in numbers if (how := _damage_of(parts, number, held.get(number))) is not None
    ]


def told_of_repair(store: str, damaged: Sequence[DamagedPart]) -> list[str]:
    """Return, after a triage has read their logs again, what was wrong with the list and with parts, and what those hold now."""
    told = [f"{store}: {_LIST_LOST}"] if _held(store) is None else []
    if not damaged:
        return told
    before, now = sum(part.held or 0 for part in damaged), _jobs_in(store)
    lost = sum(max(0, (part.held or 0) - now.get(part.number, 0)) for part in damaged)
    parts = [
        f"{store}: {_named(damaged)}: the logs of these parts were read again",
        f"jobs now: {sum(now.get(part.number, 0) for part in damaged):,}",
        "before: unknown" if any(part.held is None for part in damaged) else f"before: {before:,}",
        *([f"lost, because their logs are gone: {lost:,}"] if lost else []),
    ]
    return [*told, ", ".join(parts)]


def told_to_readers(store: str) -> list[str]:
    """Return what is missing in what is read from a store now, a line each."""
    lines = [f"{store}: {lost}" for lost, is_lost in ((GROUPS_LOST, are_lost(store)), (_LIST_LOST, _held(store) is None)) if is_lost]
    damaged = find_damage(store)
    if damaged:
        lines.append(f"{store}: {_named(damaged)}: jobs are missing here until oomdoctor triage reads their logs again")
    return lines


def _damage_of(parts: Parts, number: int, held: int | None) -> str | None:
    part = parts.read(number)
    if part is None:
        return "is missing" if held else None
    if not part.is_whole:
        return "has a different format" if part.has_other_form else "is damaged"
    if part.head is not None and part.head.jobs < (held or 0):
        return f"has {part.head.jobs:,} of {held:,} jobs"
    return None


def _jobs_in(store: str) -> dict[int, int]:
    parts = Parts(os.path.join(store, "parts"))
    heads = ((number, parts.head(number)) for number in ALL_PARTS)
    return {number: head.jobs for number, head in heads if head is not None}


def _held(store: str) -> dict[int, int] | None:
    """Return how many jobs each part held; None where what was kept of it is damaged."""
    path = os.path.join(store, _FILE)
    data = read_sealed(path)
    try:
        return decode(data, type=dict[int, int]) if data is not None else None if os.path.lexists(path) else {}
    except DecodeError:
        return None


def _named(damaged: Sequence[DamagedPart]) -> str:
    told = ", ".join(map(str, damaged[:_NAMED]))
    return f"part {told}" if len(damaged) <= _NAMED else f"part {told}, and {len(damaged) - _NAMED} more"
