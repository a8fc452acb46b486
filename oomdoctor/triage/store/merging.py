"""Merges several stores into one: those of separate shards, or of different days, clusters and buckets."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct
from msgspec.json import Decoder

from oomdoctor.triage.store.part_family import PartFamily
from oomdoctor.triage.store.parts import ALL_PARTS, Basis, Parts


class _Scanned(Struct):
    scanned_at: int = 0


_SCANNED = Decoder(_Scanned)


def merge_parts(folders: Sequence[str], into: str) -> None:
    """Merge the parts in some folders into one; for a family in several of them, the most recently created rows are used.

    A family is in the part of the same number everywhere, so one number is held at a time.
    """
    os.makedirs(into, exist_ok=True)
    stores = [Parts(folder) for folder in folders]
    for number in ALL_PARTS:
        kept = [part for store in stores if (part := store.read(number)) is not None]
        families: dict[str, PartFamily] = {}
        for part in kept:
            for name, family in part.families.items():
                known = families.get(name)
                if known is None or _made(family) >= _made(known):
                    families[name] = family
        if families:
            rules = {"" if part.head is None else part.head.basis.rules for part in kept}
            # A missing list has an empty digest, so the next run on this store compares every family.
            basis = Basis("", rules.pop() if len(rules) == 1 else "")
            Parts(into).write(number, basis, [families[name] for name in sorted(families)])


def _made(family: PartFamily) -> int:
    """Return when a family's rows were created, in seconds since 1970."""
    return max((_SCANNED.decode(row).scanned_at for row in family.rows), default=0)
