"""Printed arguments: `TrainingArguments(` with a line `name=value,` each, `Namespace(...)`, tables of `name: value` or `name ... value`."""

from __future__ import annotations

import re

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import LONGEST, MOST_KEYS, ParsedConfig, plain_value

_PAIR = re.compile(
    r"(?:^|[(,\s])(?P<key>[a-z]\w{1,80})=(?P<value>'[^'\n]{0,500}'|\"[^\"\n]{0,500}\"|\[[^\]\n]{0,500}\]|[^\s,()'\"\[]{1,300})",
    re.MULTILINE,
)
_MEMBER = re.compile(r"[A-Z]\w{1,40}\.([A-Z][A-Z0-9_]{0,60})\Z")
"""A member of an enum; its value is its name in lower case: `OptimizerNames.ADAMW_TORCH`."""
_NAMES = re.compile(r"\b(?:\w{0,40}(?:Arguments|Config|Namespace|Args))\(|^\s{0,8}[a-z]\w{1,80}=[^\s=]", re.MULTILINE)


_IMPORT = re.compile(r"^(?:from|import)[ \t]{1,8}([a-z]\w{1,40})", re.MULTILINE)


def is_dump(text: str) -> bool:
    """Return whether a text looks like printed arguments."""
    return _NAMES.search(text[:20_000]) is not None


def read_dump(file: str, text: str) -> ParsedConfig:
    """Return the pairs of a printed call, in order; the last one of a name counts."""
    given: list[WrittenSetting] = []
    line, at = 1, 0
    for match in _PAIR.finditer(text):
        line += text.count("\n", at, match.start("key"))
        at = match.start("key")
        given.append(WrittenSetting(key=match["key"], value=_value(match["value"]), file=file, line=line))
        if len(given) >= MOST_KEYS:
            break
    imports = tuple(dict.fromkeys(match[1] for match in _IMPORT.finditer(text)))
    return ParsedConfig(file=file, form="dump", written=tuple(given), imports=imports)


def _value(text: str) -> Scalar | tuple[Scalar, ...]:
    if text[0] == "[":
        return tuple(plain_value(part.strip().strip("'\"")) for part in text[1:-1].split(",") if part.strip())
    if text[0] in "'\"":
        return text[1:-1][:LONGEST]
    member = _MEMBER.match(text)
    return member[1].lower() if member else plain_value(text)
