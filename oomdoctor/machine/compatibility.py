"""Which driver, CUDA and build of torch go together, by the tables of rules/tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.versions import parse_version

_CODE = re.compile(r"(?P<kind>sm|compute)_(?P<major>\d{1,2})(?P<minor>\d)(?P<suffix>[af]?)")
"""`sm_86` is 8.6, `sm_120` is 12.0."""


def find_minimum_driver(cuda: str | None) -> str | None:
    """Return the oldest driver that runs programs built for a CUDA version.

    From 11 on it is that of the major version, before that of the version itself.
    """
    version = parse_version(cuda)
    if version is None or len(version.release) < 2:
        return None
    rows = {row["cuda"]: row["driver"] for row in table("cuda_minimum")}
    return rows.get(f"{version.major}.{version.minor}") or rows.get(str(version.major))


def find_newest_cuda(driver: str | None) -> str | None:
    """Return the newest CUDA that a driver supports natively, from its branch."""
    version = parse_version(driver)
    return None if version is None else next((row["cuda"] for row in table("driver_branches") if row["branch"] == str(version.major)), None)


def has_code(capability: str | None, architectures: Sequence[str]) -> bool | None:
    """Return whether a build has code for a card; None where one of them is unknown.

    A cubin runs on cards of the same major version and the same or a newer minor one, `sm_90a` on 9.0 alone, and PTX (`compute_90`)
    on all newer ones (CUDA programming guide, binary and PTX compatibility).
    """
    version = parse_version(capability)
    codes = [code for name in architectures if (code := _CODE.fullmatch(name))]
    if version is None or not codes:
        return None
    card = (version.major, version.minor)
    return any(_runs(code["kind"], code["suffix"], (int(code["major"]), int(code["minor"])), card) for code in codes)


def _runs(kind: str, suffix: str, code: tuple[int, int], card: tuple[int, int]) -> bool:
    if suffix == "a":
        return code == card
    return code <= card and (kind == "compute" or code[0] == card[0])
