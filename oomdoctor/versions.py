"""Versions of packages, drivers and CUDA, in the order of PEP 440: `2.3.0rc1` is older than `2.3.0`, `2.3.0+cu121` is not older.

`packaging` is loaded when the first version is read: a diagnosis without one does not pay for it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

_LONGEST = 100
_RELEASE, _LAST = 3, 9999
"""Number of components in a release, and a value that no last component reaches."""
_CLAUSE = re.compile(r"(===|==|!=|>=|<=|~=|>|<)\s*(\S+)")
_NUMBERS = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,5})(?![0-9])")


@lru_cache(maxsize=1024)
def parse_version(text: str | None) -> Version | None:
    """Return the version that `text` states; None if it states none.

    What PEP 440 does not accept (`2.1.2-py310_cuda`) counts as the numbers that it begins with.
    """
    text = (text or "").strip()[:_LONGEST]
    if not any(map(str.isdecimal, text)):
        return None
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - 3 ms that only a known version is worth

    try:
        return Version(text)
    except InvalidVersion:
        numbers = _NUMBERS.match(text)
        return Version(numbers[1]) if numbers else None


def last_release(text: str | None) -> str | None:
    """Return the last release of a series named by fewer than three numbers (`0.8`), which may be any of it; any other text unchanged."""
    known = parse_version(text)
    if known is None or known.is_prerelease or len(known.release) >= _RELEASE:
        return text
    return ".".join(map(str, (*known.release, _LAST)))


def at_least(version: str | None, minimum: str | None) -> bool | None:
    """Return whether a version is `minimum` or newer; None if one of them is unknown."""
    left = parse_version(version)
    right = None if left is None else parse_version(minimum)
    return None if left is None or right is None else left >= right


def within(version: str | None, since: str | None = None, until: str | None = None) -> bool | None:
    """Return whether a version is within a range that includes both ends; None if the version is unknown.

    `until` names a whole series: `4.57` includes 4.57.3 too, `4.57.2` does not. A missing end is open.
    """
    known = parse_version(version)
    if known is None:
        return None
    first, last = parse_version(since), parse_version(until)
    return (first is None or known >= first) and (last is None or series(known, len(last.release)) <= last.release)


def in_span(version: str | None, since: str | None, until: str | None) -> bool:
    """Return whether a known version is `since` or newer and older than `until`; a missing end is open."""
    return parse_version(version) is not None and at_least(version, since) is not False and not at_least(version, until)


def satisfies(version: str | None, specifier: str) -> bool | None:
    """Return whether a version satisfies a requirement (`>=0.21,<0.22`); None if the version is unknown.

    packaging's own specifiers take as long to load as everything else that a requirement needs.
    """
    known = parse_version(version)
    return None if known is None else all(_meets(known, clause.strip()) for clause in specifier.split(",") if clause.strip())


def _meets(version: Version, clause: str) -> bool:
    match = _CLAUSE.fullmatch(clause)
    bound = parse_version(match[2].removesuffix(".*")) if match else None
    if match is None or bound is None:
        return True
    operator, text = match[1], match[2]
    is_series = text.endswith(".*")
    same = series(version, len(bound.release)) == bound.release if is_series else version.public == bound.public
    if operator in ("==", "==="):
        return same
    if operator == "!=":
        return not same
    if operator == "~=":
        return version >= bound and series(version, len(bound.release) - 1) == bound.release[:-1]
    return {">=": version >= bound, "<=": version <= bound or same, ">": version > bound and not same, "<": version < bound}[operator]


def series(version: Version, numbers: int) -> tuple[int, ...]:
    """Return the first `numbers` numbers of a version: 4, 57 of `4.57.3rc1`; missing ones are 0."""
    return (*version.release, *(0,) * numbers)[:numbers]
