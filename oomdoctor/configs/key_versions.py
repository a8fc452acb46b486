"""Which keys a framework has at which version, and what the writer of an unknown one may have meant."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from oomdoctor.knowledge.records.framework import KeyTable

State = Literal["there", "gone", "not-yet", "elsewhere", "unknown"]
_NUMBERS = re.compile(r"\d{1,6}")
_NEAR = 0.84


class KeyStatus(Struct, frozen=True):
    """How a key stands at a version. `elsewhere`: other versions have it, and this one was not said."""

    state: State
    until: str | None = None
    """The last examined version that has it."""
    since: str | None = None
    """The first one."""


class FrameworkKeys:
    """The keys of one framework."""

    def __init__(self, table: KeyTable) -> None:
        self._versions = table.versions
        self._spans = {name: span for span in table.spans for name in span.names.split()}

    def status(self, name: str, version: str | None) -> KeyStatus:
        """Whether the key counts. Between two examined versions a change is not known, and the key passes."""
        span = self._spans.get(name)
        if span is None:
            return KeyStatus("unknown")
        since, until = span.since, span.until
        gone, before = self._next(until, 1), self._next(since, -1)
        if version is None:
            return KeyStatus("elsewhere" if until else "there", until, since)
        if gone is not None and until is not None and _after(version_order(version), version_order(until), version_order(gone)):
            return KeyStatus("gone", until, since)
        if before is not None and since is not None and not _within(version_order(version), version_order(before), version_order(since)):
            return KeyStatus("not-yet", until, since)
        return KeyStatus("there", until, since)

    def _next(self, version: str | None, step: int) -> str | None:
        return None if version is None else self._versions[self._versions.index(version) + step]

    def current(self) -> list[str]:
        """The keys of the newest examined version."""
        return [name for name, span in self._spans.items() if span.until is None]

    def covers(self, version: str | None) -> bool:
        """Whether the version is not newer than the newest examined one."""
        return version is None or version_order(version)[:2] <= version_order(self._versions[-1])[:2]


def version_order(version: str) -> tuple[int, ...]:
    """A version as something that can be compared: 4.46.0.dev0 counts as 4.46.0."""
    return tuple(int(part) for part in _NUMBERS.findall(version.split("+")[0])[:3])


def _after(at: tuple[int, ...], until: tuple[int, ...], gone: tuple[int, ...]) -> bool:
    """Whether a version is past a removal. Keys do not go in a patch release where a minor one lies between."""
    return at >= gone or (until[:2] != gone[:2] and at[:2] == gone[:2])


def _within(at: tuple[int, ...], before: tuple[int, ...], since: tuple[int, ...]) -> bool:
    """Whether a version is past an addition, or may be."""
    return at > before and not (before[:2] != since[:2] and at[:2] == before[:2])


def closest_key(name: str, known: list[str]) -> str | None:
    """The key that was probably meant, None where none is near."""
    import difflib  # noqa: PLC0415 - only an unknown key pays for it

    squeezed = {one.replace("_", ""): one for one in known}
    same = squeezed.get(name.replace("_", "").replace("-", "").lower())
    if same is not None:
        return same
    return next(iter(difflib.get_close_matches(name.lower(), known, 1, _NEAR)), None)
