"""Signatures that are data: a pattern with named groups, matched in cleaned text.

In a pattern a blank matches any run of white space (so a message that a terminal wrapped still matches) and `{size}`,
`{int}`, `{num}`, `{word}`, `{path}`, `{rest}` stand for the common kinds of value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from oomdoctor.case.events import Certainty, Kind, Outcome, Value
from oomdoctor.units import NOT_AVAILABLE, parse_size

MACROS = {
    "size": r"\d[\d,.]{0,24}\s?(?:[KMGTP]i?B?|[kmg]i?[bB]?|[bB]ytes?|B)?",
    "int": r"-?\d{1,20}",
    "num": r"-?\d{1,20}(?:\.\d{1,20})?",
    "word": r"[^\s,;:'\"()\[\]{}<>]{1,200}",
    "path": r"[^\s'\"<>]{1,400}",
    "rest": r"[^\n]{0,300}",
}
_MACRO = re.compile(r"\{(" + "|".join(MACROS) + r")\}")
_INTEGER = re.compile(r"-?\d{1,18}\Z")


class Match(NamedTuple):
    """One message found in a text: whose, where, and what it says."""

    signature: str
    start: int
    end: int
    fields: Mapping[str, Value]


class Signature:
    """One message that a program prints, ready to be matched; its pattern is compiled when first used."""

    __slots__ = (
        "_compiled", "_pattern", "certainty", "family", "id", "kind", "literals", "outcome", "program", "set", "unit",
    )  # fmt: skip

    def __init__(self, core: Mapping[str, Any]) -> None:
        self.id: str = core["id"]
        self.program: str = core.get("program", "")
        self.kind = Kind(core["kind"])
        self.certainty = Certainty(core["certainty"]) if core.get("certainty") else None
        self.outcome = Outcome(core.get("outcome", "failure"))
        self.literals: list[str] = core["literals"]
        self.family: str | None = core.get("family")
        self.set: Mapping[str, Value] = core.get("set", {})
        self.unit: Mapping[str, str] = core.get("unit", {})
        self._pattern: str | None = core.get("pattern")
        self._compiled: re.Pattern[str] | None = None

    def matches(self, text: str) -> Iterator[Match]:
        """Every place in `text` where the message stands."""
        if self._compiled is None:
            if self._pattern is None:
                return
            self._compiled = re.compile(expand(self._pattern), re.MULTILINE)
        for found in self._compiled.finditer(text):
            yield Match(self.id, found.start(), found.end(), self._fields(found))

    def _fields(self, found: re.Match[str]) -> dict[str, Value]:
        fields: dict[str, Value] = dict(self.set)
        for name, text in found.groupdict().items():
            if text is None:
                continue
            value = read_value(name, text, self.unit.get(name, ""))
            if value is not None:
                fields[name] = value
        return fields


def read_value(name: str, text: str, unit: str = "") -> Value | None:
    """The text of a group as the value that its name promises: `*_bytes` a size, integers as int, the rest as text."""
    text = text.strip()
    if name.endswith("_bytes"):
        size = parse_size(text, unit)
        return None if size is None or size >= NOT_AVAILABLE else size
    if _INTEGER.match(text):
        return int(text)
    return re.sub(r"\s+", " ", text)


def expand(pattern: str) -> str:
    """The regular expression behind a pattern of a rule."""
    pattern = _MACRO.sub(lambda macro: f"(?:{MACROS[macro[1]]})", pattern)
    out: list[str] = []
    inside = False
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            out.append(pattern[at : at + 2])
            at += 2
            continue
        if char == "[" and not inside:
            inside = True
            # A bracket that opens the class may be followed by ^ and by a ] that is a member.
            lead = re.compile(r"\[\^?\]?").match(pattern, at)
            out.append(lead[0] if lead else char)
            at += len(out[-1])
            continue
        if char == "]":
            inside = False
        out.append(r"\s+" if char == " " and not inside else char)
        at += 1
    return "".join(out)
