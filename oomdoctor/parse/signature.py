"""Signatures that are data: a pattern with named groups, matched in cleaned text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from oomdoctor.case.event import Certainty, Kind, Outcome, Value
from oomdoctor.knowledge.records.signature import SignatureCore
from oomdoctor.units import NOT_AVAILABLE, parse_size

_MOST_COMPILED = 64
_INTEGER = re.compile(r"-?\d{1,18}\Z")


class Match(Struct, frozen=True):
    """One message found in a text: whose, where, and what it says."""

    signature: str
    start: int
    end: int
    fields: Mapping[str, Value]


class Signature:
    """One message that a program prints, ready to be matched; its patterns are compiled when first used."""

    __slots__ = (
        "_alternatives", "_compiled", "certainty", "family", "general", "id", "kind", "literals", "outcome", "program", "purpose", "set",
        "unit",
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
        self._alternatives = core.alternatives
        self._compiled: dict[tuple[str, ...], re.Pattern[str]] = {}

    def matches(self, text: str) -> Iterator[Match]:
        """Every place in `text` where the message stands."""
        possible = tuple(
            branch.pattern for branch in self._alternatives if branch.needs is None or any(needed in text for needed in branch.needs)
        )
        for match in self._pattern(possible).finditer(text) if possible else ():
            yield Match(self.id, match.start(), match.end(), self._fields(match))

    def _pattern(self, possible: tuple[str, ...]) -> re.Pattern[str]:
        """Return a pattern of those branches that a text can hold: trying all of many costs more than all else."""
        compiled = self._compiled.get(possible)
        if compiled is None:
            if len(self._compiled) >= _MOST_COMPILED:
                self._compiled.clear()
            compiled = self._compiled[possible] = re.compile("|".join(possible), re.MULTILINE)
        return compiled

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
    """Return the text of a group as the value that its name promises: `*_bytes` a size, integers as int, the rest as text."""
    text = text.strip()
    if name.endswith("_bytes"):
        size = parse_size(text, unit)
        return None if size is None or size >= NOT_AVAILABLE else size
    if _INTEGER.match(text):
        return int(text)
    return re.sub(r"\s+", " ", text)
