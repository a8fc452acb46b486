"""Which keys a framework has at which version, and what the writer of an unknown one may have meant."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.knowledge.records.framework import KeyTable
from oomdoctor.versions import parse_version, series

State = Literal["there", "gone", "not-yet", "elsewhere", "unknown"]
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
        """Return how a key stands at a version. Between two examined versions a change is not known, and the key passes."""
        span = self._spans.get(name)
        if span is None:
            return KeyStatus("unknown")
        since, until = span.since, span.until
        at = _numbers(version)
        if at is None:
            return KeyStatus("elsewhere" if until else "there", until, since)
        if until is not None and _is_after(at, _numbers(until), _numbers(self._next(until, 1))):
            return KeyStatus("gone", until, since)
        if since is not None and _is_before(at, _numbers(self._next(since, -1)), _numbers(since)):
            return KeyStatus("not-yet", until, since)
        return KeyStatus("there", until, since)

    def _next(self, version: str, step: int) -> str:
        return self._versions[self._versions.index(version) + step]

    def current(self) -> list[str]:
        """Return the keys of the newest examined version."""
        return [name for name, span in self._spans.items() if span.until is None]

    def covers(self, version: str | None) -> bool:
        """Return whether the version is not newer than the newest examined one."""
        at, newest = _numbers(version), _numbers(self._versions[-1])
        return at is None or newest is None or at[:2] <= newest[:2]


def _numbers(version: str | None) -> tuple[int, ...] | None:
    """Return the three numbers of a version: keys of 4.46.0 are in 4.46.0.dev0 and 4.46.0rc1 too."""
    known = parse_version(version)
    return None if known is None else series(known, 3)


def _is_after(at: tuple[int, ...], until: tuple[int, ...] | None, gone: tuple[int, ...] | None) -> bool:
    """Return whether a version is past a removal. Keys do not go in a patch release where a minor one lies between."""
    return until is not None and gone is not None and (at >= gone or (until[:2] != gone[:2] and at[:2] == gone[:2]))


def _is_before(at: tuple[int, ...], before: tuple[int, ...] | None, since: tuple[int, ...] | None) -> bool:
    """Return whether a version is certainly before an addition."""
    return before is not None and since is not None and (at <= before or (before[:2] != since[:2] and at[:2] == before[:2]))


def closest_key(name: str, known: list[str]) -> str | None:
    """Return the key that was probably meant; None where none is near."""
    import difflib  # noqa: PLC0415 - only an unknown key pays for it

    squeezed = {key.replace("_", ""): key for key in known}
    same = squeezed.get(name.replace("_", "").replace("-", "").lower())
    if same is not None:
        return same
    return next(iter(difflib.get_close_matches(name.lower(), known, 1, _NEAR)), None)
