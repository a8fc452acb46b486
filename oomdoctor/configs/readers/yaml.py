"""YAML configs with the line of every key. Read as a stream of events: nothing is constructed, aliases are counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.settings import ConfigIssue, Scalar, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.configs.parsed_config import (
    DEEPEST,
    LONGEST,
    MOST_KEYS,
    ParsedConfig,
    duplicate_key,
    form_issue,
    limits_exceeded,
    plain_value,
)

_ATTEMPTS = 4
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_TOP_KEY = re.compile(r"^[A-Za-z_][\w.-]{0,100}:(?:\s|$)", re.MULTILINE)
_WORDS: dict[str, Scalar] = {
    "yes": True, "Yes": True, "YES": True, "on": True, "On": True, "ON": True,
    "no": False, "No": False, "NO": False, "off": False, "Off": False, "OFF": False,
    "null": None, "Null": None, "NULL": None, "~": None, "": None,
}  # fmt: skip
"""YAML 1.1, which PyYAML reads: a bare `no` is false."""


def read_yaml(file: str, text: str) -> ParsedConfig:
    """The settings of a YAML text. What stands before and after a mistake is kept."""
    text = _FORBIDDEN.sub("\ufffd", text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    walk = _Walk(file)
    rest: int | None = 0
    for _ in range(_ATTEMPTS):
        if rest is None:
            break
        rest = _read(walk, text, rest)
    return ParsedConfig(file=file, form="yaml", written=tuple(walk.written), issues=tuple(walk.issues))


def _read(walk: _Walk, text: str, start: int) -> int | None:
    """Reads from the offset `start`; where a mistake stops it, the offset of the next key at the left edge."""
    import yaml  # noqa: PLC0415 - only who has a config pays for YAML

    above = text.count("\n", 0, start)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text[start:], Loader=loader):
            walk.take(event, above)
    except _Beyond as why:
        walk.issues.append(limits_exceeded(walk.file, why.line))
        return None
    except yaml.YAMLError as why:
        mark = getattr(why, "problem_mark", None)
        line = above + (mark.line if mark is not None else 0) + 1
        walk.issues.append(_broken(walk.file, min(line, text.count("\n") + 1), str(getattr(why, "problem", None) or "not YAML")))
        walk.stack.clear()
        following = _TOP_KEY.search(text, _line_start(text, line + 1))
        return following.start() if following else None
    return None


def _line_start(text: str, line: int) -> int:
    """The offset of a 1-based line; the end of the text where it has fewer."""
    at = 0
    for _ in range(line - 1):
        found = text.find("\n", at)
        if found < 0:
            return len(text)
        at = found + 1
    return at


def _broken(file: str, line: int, problem: str) -> ConfigIssue:
    if "'\\t'" in problem or "tab character" in problem:
        what = Text("a tab stands where YAML wants blanks", "这里用了制表符，YAML 只允许用空格缩进")
    else:
        what = Text(f"this is not valid YAML: {problem}", f"这里不是合法的 YAML：{problem}")
    why = Text(
        "The framework refuses the whole file; oomdoctor goes on with the keys after it.",
        "框架会拒绝整个文件；oomdoctor 会跳过这里继续读后面的键。",
    )
    return form_issue("yaml-broken", file, line, "", what, why)


class _Beyond(Exception):
    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Block(Struct):
    """A mapping or sequence that is open."""

    path: str
    mapping: bool
    first: int
    """How many settings there were when it began."""
    anchor: str | None = None
    key: str | None = None
    line: int = 1
    scalars: list[Scalar] | None = None
    """The items of a sequence while all of them are scalars."""
    count: int = 0
    seen: set[str] | None = None


class _Walk:
    def __init__(self, file: str) -> None:
        self.file = file
        self.written: list[WrittenSetting] = []
        self.issues: list[ConfigIssue] = []
        self.stack: list[_Block] = []
        self._anchors: dict[str, tuple[str, tuple[WrittenSetting, ...]]] = {}

    def take(self, event: Any, above: int) -> None:
        """One event of the parser; `above` lines of the file came before its text."""
        kind = type(event).__name__
        line = above + event.start_mark.line + 1
        if kind == "ScalarEvent":
            self._scalar(event, line)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, kind == "MappingStartEvent", line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close()
        elif kind == "AliasEvent":
            self._alias(event.anchor, line)

    def _scalar(self, event: Any, line: int) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and top.mapping and top.key is None:
            self._key(top, event.value[:LONGEST], line)
            return
        value = _value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = ("", (WrittenSetting(key="", value=value, file=self.file, line=line),))
        if top is not None and top.scalars is not None:
            top.scalars.append(value)
            if len(top.scalars) > MOST_KEYS:
                raise _Beyond(line)
        elif top is not None and top.mapping:
            self._add(WrittenSetting(key=self._path(top), value=value, file=self.file, line=top.line))
        self._done(top)

    def _key(self, top: _Block, key: str, line: int) -> None:
        top.seen = top.seen if top.seen is not None else set()
        if key in top.seen and key != "<<":
            self.issues.append(duplicate_key(self.file, line, key))
        top.seen.add(key)
        top.key, top.line = key, line

    def _open(self, event: Any, mapping: bool, line: int) -> None:
        if len(self.stack) >= DEEPEST:
            raise _Beyond(line)
        top = self.stack[-1] if self.stack else None
        if top is not None and top.mapping and top.key is None:
            self._key(top, "?", line)
        path = "" if top is None else self._path(top)
        if top is not None and not top.mapping:
            top.scalars = None
        if mapping and path and top is not None and top.key != "<<":
            self._add(WrittenSetting(key=path, value=None, file=self.file, line=top.line if top.mapping else line, block=True))
        first = len(self.written)
        self.stack.append(_Block(path=path, mapping=mapping, first=first, anchor=event.anchor, line=line, scalars=None if mapping else []))

    def _close(self) -> None:
        block = self.stack.pop()
        top = self.stack[-1] if self.stack else None
        if block.scalars is not None and block.path:
            line = top.line if top is not None and top.mapping else block.line
            self._add(WrittenSetting(key=block.path, value=tuple(block.scalars), file=self.file, line=line))
        if block.anchor is not None:
            self._anchors[block.anchor] = (block.path, tuple(self.written[block.first :]))
        self._done(top)

    def _alias(self, anchor: str, line: int) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and anchor in self._anchors:
            path = self._path(top)
            for one in _moved(*self._anchors[anchor], path, line):
                self._add(one)
        self._done(top)

    def _done(self, top: _Block | None) -> None:
        """The value of a key, or an item of a sequence, is complete."""
        if top is not None:
            top.key = None
            top.count += 1

    def _path(self, top: _Block) -> str:
        """The dotted key of what comes next; `<<` merges into the block around it."""
        own = str(top.count) if not top.mapping else top.key or ""
        if own == "<<":
            return top.path
        return (f"{top.path}.{own}" if top.path else own)[:LONGEST]

    def _add(self, one: WrittenSetting) -> None:
        self.written.append(one)
        if len(self.written) > MOST_KEYS:
            raise _Beyond(one.line)


def _value(event: Any) -> Scalar:
    if event.style in ("'", '"', "|", ">"):
        return str(event.value[:LONGEST])
    return _WORDS[event.value] if event.value in _WORDS else plain_value(event.value)


def _moved(path: str, given: tuple[WrittenSetting, ...], to: str, line: int) -> Iterator[WrittenSetting]:
    """The settings of an anchor as they stand where its alias is."""
    for one in given:
        rest = one.key[len(path) :].lstrip(".")
        key = f"{to}.{rest}" if to and rest else to or rest
        yield replace(one, key=key[:LONGEST], line=line)
