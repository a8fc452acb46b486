"""Which driver, CUDA and build of torch go together, by the tables of rules/tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.versions import parse_version, within

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


def can_have_code(capability: str | None, cuda: str | None) -> bool | None:
    """Return False where no compiler of a CUDA version makes code for a card: it came before the card, or has dropped it.

    None where it can: which of them a build has is another question. PTX, which a newer card could run, is in no wheel of the PyTorch
    index that is older than the card.
    """
    card, built = parse_version(capability), parse_version(cuda)
    rows = [row for row in table("compute_capabilities") if card and _is_below(row["compute_capability"], card.release)]
    if built is None or not rows:
        return None
    return None if any(within(cuda, row["cuda_since"], row["cuda_until"] or None) for row in rows) else False


def _is_below(capability: str, card: tuple[int, ...]) -> bool:
    """Return whether code for a compute capability runs on a card: the same major version, the same or an older minor one."""
    major, minor = (int(number) for number in capability.split("."))
    return major == card[0] and minor <= card[1]


def _runs(kind: str, suffix: str, code: tuple[int, int], card: tuple[int, int]) -> bool:
    if suffix == "a":
        return code == card
    return code <= card and (kind == "compute" or code[0] == card[0])
