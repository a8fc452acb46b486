"""Drivers, CUDA and architectures against each other, by the tables of rules/tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.knowledge.tables.csv_table import table

_ARCHITECTURE = re.compile(r"(?P<kind>sm|compute)_(?P<major>\d{1,2})(?P<minor>\d)(?P<suffix>[af]?)")
"""`sm_86` is 8.6, `sm_120` is 12.0."""


def version_order(version: str | None, most: int = 4) -> tuple[int, ...]:
    """The numbers of a version, to compare; () where there are none. `2.3.1+cu121` is 2, 3, 1."""
    return tuple(int(one) for one in re.findall(r"\d{1,6}", (version or "").split("+")[0])[:most])


def minimum_driver(cuda: str | None) -> str | None:
    """The oldest driver that runs programs built for a CUDA version: of its major version from 11 on, of the version itself before."""
    rows = {row["cuda"]: row["driver"] for row in table("cuda_minimum")}
    numbers = version_order(cuda)
    if len(numbers) < 2:
        return None
    return rows.get(f"{numbers[0]}.{numbers[1]}") or rows.get(str(numbers[0]))


def newest_cuda(driver: str | None) -> str | None:
    """The newest CUDA that a driver supports natively, from its branch."""
    branch = version_order(driver)[:1]
    known = [(version_order(row["branch"]), row["cuda"]) for row in table("driver_branches")]
    return next((cuda for number, cuda in known if number == branch), None)


def covers(driver: str | None, minimum: str | None) -> bool | None:
    """Whether a driver is new enough; None where that is not known."""
    own, needed = version_order(driver), version_order(minimum)
    return own >= needed if own and needed else None


def has_code(capability: str | None, architectures: Sequence[str]) -> bool | None:
    """Whether a build has code for a card; None where one of them is unknown.

    A cubin runs on cards of the same major version and the same or a newer minor one, `sm_90a` on 9.0 alone, and PTX (`compute_90`)
    on all newer ones (CUDA programming guide, binary and PTX compatibility).
    """
    card = version_order(capability, 2)
    listed = [found for one in architectures if (found := _ARCHITECTURE.fullmatch(one))]
    if len(card) < 2 or not listed:
        return None
    return any(_runs(found["kind"], found["suffix"], (int(found["major"]), int(found["minor"])), card) for found in listed)


def _runs(kind: str, suffix: str, code: tuple[int, ...], card: tuple[int, ...]) -> bool:
    if suffix == "a":
        return code == card
    return code <= card and (kind == "compute" or code[0] == card[0])
