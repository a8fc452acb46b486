"""TOML configs as settings with their lines: tables, and keys with one value each. Nothing is resolved or checked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import LONGEST, MOST_KEYS, ParsedConfig, plain_value

_KEY = r"[\w-]{1,100}(?:\s{0,3}\.\s{0,3}[\w-]{1,100}){0,12}"
_TABLE = re.compile(rf"\s{{0,40}}\[\s{{0,3}}({_KEY})\s{{0,3}}\]\s{{0,40}}(?:#.*)?\Z")
_PAIR = re.compile(
    rf"(\s{{0,40}}({_KEY})\s{{0,20}}=\s{{0,20}})"
    r"(\"(?!\"\")(?:[^\"\\\n]|\\.){0,2000}\"|'(?!'')[^'\n]{0,2000}'|\[[^\[\]\n]{0,2000}\]|[\w+.:-]{1,100})\s{0,200}(?:#.*)?\Z"
)
_SEVERAL = re.compile(r"=\s{0,20}(\"\"\"|'''|\[)")
_CLOSES = {"[": "]"}
_DIGITS = re.compile(r"(?<=\d)_(?=\d)")
_ITEM = re.compile(r"\"([^\"]{0,500})\"|'([^']{0,500})'|([^,\s\[\]]{1,100})")


class TomlLine(Struct, frozen=True):
    """A line that gives one value, or begins a table; the value stands between `start` and `end` of the text."""

    key: str
    """With the tables around it."""
    line: int
    start: int
    end: int
    is_table: bool = False


def toml_lines(text: str) -> Iterator[TomlLine]:
    """Yield the lines of a TOML text that say something; values of several lines are passed over."""
    table, at, closing = "", 0, None
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.rstrip("\r")
        if closing is not None:
            closing = None if closing in bare else closing
        elif match := _TABLE.match(bare):
            table = f"{_plain(match[1])}."
            yield TomlLine(_plain(match[1]), number, at, at + len(bare), is_table=True)
        elif match := _PAIR.match(bare):
            yield TomlLine(table + _plain(match[2]), number, at + match.start(3), at + match.end(3))
        elif opened := _SEVERAL.search(bare):
            end = _CLOSES.get(opened[1], opened[1])
            closing = None if end in bare[opened.end() :] else end
        at += len(line) + 1


def read_toml(file: str, text: str) -> ParsedConfig:
    """Return the settings of a TOML text, each by its tables and its key."""
    given: list[WrittenSetting] = []
    for line in toml_lines(text):
        if not line.is_table:
            given.append(WrittenSetting(key=line.key, value=_value(text[line.start : line.end]), file=file, line=line.line))
        if len(given) >= MOST_KEYS:
            break
    return ParsedConfig(file=file, form="toml", written=tuple(given))


def _plain(key: str) -> str:
    return re.sub(r"\s", "", key)


def _value(text: str) -> Scalar | tuple[Scalar, ...]:
    if text[0] in "\"'":
        return text[1:-1][:LONGEST]
    if text[0] == "[":
        return tuple(match[1] or match[2] or plain_value(match[3] or "") for match in _ITEM.finditer(text[1:-1]))
    return plain_value(_DIGITS.sub("", text))
