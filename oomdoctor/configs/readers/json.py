"""JSON configs, and printed dicts, with the line of every key. What strict JSON forbids is read and named."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from msgspec import Struct

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

TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\ufeff]+)"""
    r"""|(?P<comment>//[^\n]*|\#[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?)"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<mark>[{}\[\]:,])"""
    r"""|(?P<word>[^\s{}\[\]:,"']{1,200})"""
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_PYTHON = ("True", "False", "None")


def read_json(file: str, text: str, *, prefix: str = "", line: int = 1) -> ParsedConfig:
    """The settings of a JSON text; `prefix` and `line` place one that stands inside another file."""
    reader = _Reader(file, text, prefix, line)
    reader.run()
    return ParsedConfig(file=file, form="json", written=tuple(reader.written), issues=tuple(reader.issues))


class _Open(Struct):
    path: str
    mapping: bool
    line: int
    key: str | None = None
    scalars: list[Scalar] | None = None
    count: int = 0
    seen: set[str] | None = None
    comma: int | None = None
    """The line of a comma after which nothing came yet."""


class _Reader:
    def __init__(self, file: str, text: str, prefix: str, line: int) -> None:
        self.file, self.text, self.prefix, self.first = file, text, prefix, line
        self.written: list[WrittenSetting] = []
        self.issues: list[ConfigIssue] = []
        self.stack: list[_Open] = []
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._named: set[str] = set()

    def run(self) -> None:
        """Reads to the end, or to where it is no JSON any more."""
        at = 0
        while at < len(self.text):
            found = TOKEN.match(self.text, at)
            line = self._line(at)
            if found is None:
                self._wrong("json-broken", line, *_BROKEN)
                at += 1
                continue
            at = found.end()
            if not self._token(found, line):
                return
        if self.stack:
            self._wrong("json-broken", self._line(len(self.text)), *_UNCLOSED)

    def _line(self, offset: int) -> int:
        return self.first + bisect_right(self._breaks, offset - 1)

    def _token(self, found: re.Match[str], line: int) -> bool:
        kind, token = found.lastgroup, found[0]
        if kind == "comment":
            self._wrong("json-comment", line, *_COMMENT)
        elif kind == "mark":
            return self._mark(token, line)
        elif kind == "string":
            if token[0] == "'":
                self._wrong("json-python", line, *_PYTHON_DICT)
            return self._scalar(unescaped(token), line)
        elif kind == "word":
            if token in _PYTHON:
                self._wrong("json-python", line, *_PYTHON_DICT)
            return self._scalar(None if token == "null" else plain_value(token), line)
        return True

    def _mark(self, mark: str, line: int) -> bool:
        if mark in "{[":
            return self._open(mark == "{", line)
        top = self.stack[-1] if self.stack else None
        if top is None:
            self._wrong("json-broken", line, *_BROKEN)
        elif mark in "}]":
            self._close(top)
        elif mark == ",":
            top.comma, top.key = line, None
        return True

    def _open(self, mapping: bool, line: int) -> bool:
        if len(self.stack) >= DEEPEST:
            self.issues.append(limits_exceeded(self.file, line))
            return False
        top = self.stack[-1] if self.stack else None
        path = self.prefix if top is None else self._path(top)
        if top is not None and not top.mapping:
            top.scalars = None
        if mapping and path:
            self._add(WrittenSetting(key=path, value=None, file=self.file, line=top.line if top is not None else line, block=True))
        self._done(top)
        self.stack.append(_Open(path=path, mapping=mapping, line=line, scalars=None if mapping else []))
        return len(self.written) <= MOST_KEYS

    def _close(self, top: _Open) -> None:
        if top.comma is not None:
            self._wrong("json-trailing-comma", top.comma, *_TRAILING)
        self.stack.pop()
        if top.scalars is not None and top.path:
            self._add(WrittenSetting(key=top.path, value=tuple(top.scalars), file=self.file, line=top.line))

    def _scalar(self, value: Any, line: int) -> bool:
        top = self.stack[-1] if self.stack else None
        if top is None:
            return True
        if top.mapping and top.key is None:
            key = str(value)[:LONGEST]
            if top.comma is None and top.count:
                self._wrong("json-broken", line, *_NO_COMMA)
            top.seen = top.seen if top.seen is not None else set()
            if key in top.seen:
                self.issues.append(duplicate_key(self.file, line, key))
            top.seen.add(key)
            top.key, top.line, top.comma = key, line, None
            return True
        if top.scalars is not None:
            top.scalars.append(value)
        elif top.mapping:
            self._add(WrittenSetting(key=self._path(top), value=value, file=self.file, line=top.line))
        self._done(top)
        return len(self.written) <= MOST_KEYS and (top.scalars is None or len(top.scalars) <= MOST_KEYS)

    def _done(self, top: _Open | None) -> None:
        if top is not None:
            top.key, top.comma = None, None
            top.count += 1

    def _path(self, top: _Open) -> str:
        own = str(top.count) if not top.mapping else top.key or ""
        return (f"{top.path}.{own}" if top.path else own)[:LONGEST]

    def _add(self, one: WrittenSetting) -> None:
        self.written.append(one)
        if len(self.written) == MOST_KEYS:
            self.issues.append(limits_exceeded(self.file, one.line))

    def _wrong(self, identity: str, line: int, what: Text, why: Text) -> None:
        """Each kind of mistake is named once, where it stands first."""
        if identity not in self._named:
            self._named.add(identity)
            self.issues.append(form_issue(identity, self.file, line, "", what, why))


def unescaped(token: str) -> str:
    inner = token[1:-1][: LONGEST * 2]
    if "\\" not in inner:
        return inner[:LONGEST]
    text = _ESCAPE.sub(lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else _ESCAPED.get(found[1], found[1]), inner)
    return text[:LONGEST]


_REFUSED = Text(
    "transformers and accelerate read this file with `json.load`, which refuses it.",
    "transformers 和 accelerate 用 `json.load` 读这个文件，遇到这里会直接报错。",
)
_BROKEN = (Text("this is not valid JSON", "这里不是合法的 JSON"), _REFUSED)
_UNCLOSED = (Text("the file ends before its brackets are closed", "文件结束时括号还没有闭合"), _REFUSED)
_NO_COMMA = (Text("a comma is missing before this key", "这个键之前少了一个逗号"), _REFUSED)
_COMMENT = (Text("JSON has no comments", "JSON 里不能写注释"), _REFUSED)
_TRAILING = (Text("a comma stands after the last entry", "最后一项后面多了一个逗号"), _REFUSED)
_PYTHON_DICT = (
    Text("this is a Python dict, not JSON: single quotes, `True`, `None`", "这是 Python 字典的写法，不是 JSON：单引号、`True`、`None`"),
    Text(
        "JSON wants double quotes, `true`, `false` and `null`; `json.load` refuses the rest.",
        "JSON 要用双引号和 `true`、`false`、`null`，否则 `json.load` 会报错。",
    ),
)
