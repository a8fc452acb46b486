"""Rows of jobs that ended long ago are dropped from a store; that their logs were read stays known, so that they are not read again."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.triage.store.part_family import PartFamily
from oomdoctor.triage.store.parts import ALL_PARTS, Basis, Parts, ended_of


def expire(parts: Parts, before: int) -> None:
    """Drop the rows of jobs that ended before a time, in seconds since 1970; those of which nobody knows when they ended stay."""
    for number in ALL_PARTS:
        part = parts.read(number)
        if part is None:
            continue
        families = list(part.families.values())
        kept = [_without(family, before) for family in families]
        if any(now is not family for now, family in zip(kept, families)):
            parts.write(number, Basis("", "") if part.head is None else part.head.basis, kept)


def _without(family: PartFamily, before: int) -> PartFamily:
    left = [number for number, row in enumerate(family.rows) if not _is_older(ended_of(row), before)]
    if len(left) == len(family.rows):
        return family
    rows, names = [family.rows[number] for number in left], [family.names[number] for number in left]
    return replace(family, rows=rows, names=names, records="" if not rows else family.records)


def _is_older(ended: int | None, before: int) -> bool:
    return ended is not None and ended < before
