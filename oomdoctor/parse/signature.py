"""Signatures that are data: a pattern with named groups, matched in cleaned text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import methodcaller

from msgspec import Struct

from oomdoctor.case.event import Certainty, Kind, Outcome, Value
from oomdoctor.knowledge.records.signature import Alternative, SignatureCore
from oomdoctor.units import NOT_AVAILABLE, parse_size

_start = methodcaller("start")
_INTEGER = re.compile(r"-?\d{1,18}\Z")


class Match(Struct, frozen=True):
    """One message found in a text: its signature, location and contents."""

    signature: str
    start: int
    end: int
    fields: Mapping[str, Value]


class _Branch:
    """One branch of a pattern, compiled when a text may match it."""

    __slots__ = ("_branch", "_compiled")

    def __init__(self, branch: Alternative) -> None:
        self._branch = branch
        self._compiled: re.Pattern[str] | None = None

    def find(self, text: str, at: int) -> re.Match[str] | None:
        """Return the first match at or after a position."""
        if self._branch.needs is not None:
            places = [place for needed in self._branch.needs if (place := text.find(needed, at)) >= 0]
            if not places:
                return None
            at = max(at, min(places) - self._branch.reach)
        if self._compiled is None:
            self._compiled = re.compile(self._branch.pattern, re.MULTILINE)
        return self._compiled.search(text, at)


class Signature:
    """One message that a program prints, ready to be matched.

    Each branch of its pattern is searched for separately, and only where a text can match it: trying many of them all costs more than
    everything else.
    """

    __slots__ = (
        "_branches", "certainty", "family", "general", "id", "kind", "literals", "outcome", "program", "purpose", "set", "unit",
    )  # fmt: skip

    def __init__(self, core: SignatureCore) -> None:
        self.id: str = core.id
        self.program: str = core.program
        self.purpose: str | None = core.purpose
        self.kind = Kind(core.kind)
        self.certainty = Certainty(core.certainty) if core.certainty else None
        self.outcome = Outcome(core.outcome)
        self.general = core.general
        self.literals = core.literals
        self.family: str | None = core.family
        self.set: Mapping[str, Value] = core.set
        self.unit: Mapping[str, str] = core.unit
        self._branches = [_Branch(alternative) for alternative in core.alternatives]

    def matches(self, text: str) -> Iterator[Match]:
        """Yield every match of the message in `text`."""
        nearest = [branch.find(text, 0) for branch in self._branches]
        while first := min(filter(None, nearest), key=_start, default=None):
            yield Match(self.id, first.start(), first.end(), self._fields(first))
            at = max(first.end(), first.start() + 1)
            nearest = [
                branch.find(text, at) if match is not None and match.start() < at else match
                for match, branch in zip(nearest, self._branches)
            ]

    def _fields(self, match: re.Match[str]) -> dict[str, Value]:
        fields: dict[str, Value] = dict(self.set)
        for name, text in match.groupdict().items():
            if text is None:
                continue
            value = read_value(name, text, self.unit.get(name, ""))
            if value is not None:
                fields[name] = value
        return fields


def read_value(name: str, text: str, unit: str = "") -> Value | None:
    """Return the text of a group as the type its name implies: `*_bytes` a size, integers as int, the rest as text."""
    text = text.strip()
    if name.endswith("_bytes"):
        size = parse_size(text, unit)
        return None if size is None or size >= NOT_AVAILABLE else size
    if _INTEGER.match(text):
        return int(text)
    return re.sub(r"\s+", " ", text)
