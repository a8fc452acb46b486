"""JSON texts as a tree with places, and JSON configs and printed dicts as settings. What strict JSON forbids is read and named."""

from __future__ import annotations

import re
from bisect import bisect_right

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.text import Text
from oomdoctor.configs.parsed_config import LONGEST, ParsedConfig, duplicate_key, form_issue, limits_exceeded
from oomdoctor.configs.readers.tree import BeyondLimits, Node, TreeBuilder
from oomdoctor.configs.readers.tree_settings import SettingsReader

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\ufeff]+)"""
    r"""|(?P<comment>//[^\n]*|\#[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?)"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<mark>[{}\[\]:,])"""
    r"""|(?P<word>[^\s{}\[\]:,"']{1,200})"""
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_PYTHON = ("True", "False", "None")


class JsonTree(Struct):
    """The values of a text, and what is wrong with it."""

    roots: list[Node]
    mistakes: dict[str, tuple[int, Text, Text]]
    """By the id of an issue the line of the first one, what is wrong, and why that matters."""
    duplicates: list[Node]
    """The keys that stand twice in one block."""
    count: int
    """The keys and values."""
    invalid: int | None = None
    """The line of the first character that begins no token."""
    unmatched: bool = False
    """Whether a bracket closes another one, or none."""
    beyond: int | None = None
    """The line where the text is larger or deeper than a config can be; the rest was not read."""


def parse_json(text: str) -> JsonTree:
    """Return the tree of a JSON text; a mistake in it is passed over."""
    return _Parser(text).run()


def read_json(file: str, text: str, *, prefix: str = "", line: int = 1) -> ParsedConfig:
    """Return the settings of a JSON text; `prefix` and `line` place one that stands inside another file."""
    tree, above = parse_json(text), line - 1
    issues = [form_issue(kind, file, at + above, "", what, why) for kind, (at, what, why) in tree.mistakes.items()]
    issues += [duplicate_key(file, key.line + above, key.value[:LONGEST]) for key in tree.duplicates]
    settings, beyond = SettingsReader(file, {"null": None}), tree.beyond
    try:
        for root in tree.roots:
            settings.read(root, prefix)
    except BeyondLimits as limit:
        beyond = limit.line
    issues += [] if beyond is None else [limits_exceeded(file, beyond + above)]
    given = settings.written if not above else [replace(setting, line=setting.line + above) for setting in settings.written]
    return ParsedConfig(file=file, form="json", written=tuple(given), issues=tuple(issues))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._builder = TreeBuilder()
        self._tree = JsonTree(self._builder.roots, {}, self._builder.twice, 0)

    def run(self) -> JsonTree:
        """Read to the end, or to where it is no config any more."""
        try:
            self._read()
            if self._builder.stack:
                self._wrong("json-broken", self._line(len(self._text)), *_UNCLOSED)
        except BeyondLimits as limit:
            self._tree.beyond = limit.line
        self._tree.count = self._builder.count
        return self._tree

    def _read(self) -> None:
        at = 0
        while at < len(self._text):
            token = _TOKEN.match(self._text, at)
            line = self._line(at)
            if token is None:
                self._tree.invalid = self._tree.invalid or line
                self._wrong("json-broken", line, *_BROKEN)
                at += 1
                continue
            at = token.end()
            self._take(token, line)

    def _line(self, offset: int) -> int:
        return 1 + bisect_right(self._breaks, offset - 1)

    def _take(self, token: re.Match[str], line: int) -> None:
        kind, text = token.lastgroup, token[0]
        if kind == "comment":
            self._wrong("json-comment", line, *_COMMENT)
        elif kind == "mark":
            self._mark(text, token, line)
        elif kind in ("string", "word"):
            if text[0] == "'" or text in _PYTHON:
                self._wrong("json-python", line, *_PYTHON_DICT)
            quote = text[0] if kind == "string" else ""
            self._add(Node("scalar", token.start(), token.end(), line, quote, _unescaped(text) if quote else text))

    def _mark(self, mark: str, token: re.Match[str], line: int) -> None:
        top = self._builder.top
        if mark in "{[":
            if top is not None and self._builder.wants_key:  # a bracket where a key should be: it has an empty one
                top.key, top.comma = Node("scalar", token.start(), token.start(), line), None
            self._builder.add(Node("mapping" if mark == "{" else "sequence", token.start(), token.end(), line, "{"))
        elif top is None:
            self._tree.unmatched = self._tree.unmatched or mark in "}]"
            self._wrong("json-broken", line, *_BROKEN)
        elif mark in "}]":
            if top.comma is not None:
                self._wrong("json-trailing-comma", top.comma, *_TRAILING)
            self._tree.unmatched |= (top.node.kind == "mapping") != (mark == "}")
            self._builder.close(token.end())
        elif mark == ",":
            top.comma, top.key = line, None

    def _add(self, node: Node) -> None:
        top = self._builder.top
        if top is not None and self._builder.wants_key and top.comma is None and top.node.entries:
            self._wrong("json-broken", node.line, *_NO_COMMA)
        self._builder.add(node)

    def _wrong(self, identity: str, line: int, what: Text, why: Text) -> None:
        """Each kind of mistake is named once, where it stands first."""
        self._tree.mistakes.setdefault(identity, (line, what, why))


def _unescaped(token: str) -> str:
    inner = token[1:-1][: LONGEST * 2]
    if "\\" not in inner:
        return inner[:LONGEST]
    text = _ESCAPE.sub(lambda match: chr(int(match[1][1:], 16)) if len(match[1]) == 5 else _ESCAPED.get(match[1], match[1]), inner)
    return text[:LONGEST]


_REFUSED = Text(
    "transformers and accelerate read this file with `json.load`, which rejects it.",
    "transformers 和 accelerate 用 `json.load` 读这个文件，遇到这里会直接报错。",
)
_BROKEN = (Text("this is not valid JSON", "这里不是合法的 JSON"), _REFUSED)
_UNCLOSED = (Text("the file ends before its brackets are closed", "文件结束时括号还没有闭合"), _REFUSED)
_NO_COMMA = (Text("a comma is missing before this key", "这个键之前少了一个逗号"), _REFUSED)
_COMMENT = (Text("JSON has no comments", "JSON 里不能写注释"), _REFUSED)
_TRAILING = (Text("there is a comma after the last entry", "最后一项后面多了一个逗号"), _REFUSED)
_PYTHON_DICT = (
    Text("this is a Python dict, not JSON: single quotes, `True`, `None`", "这是 Python 字典的写法，不是 JSON：单引号、`True`、`None`"),
    Text(
        "JSON requires double quotes, `true`, `false` and `null`; `json.load` rejects anything else.",
        "JSON 要用双引号和 `true`、`false`、`null`，否则 `json.load` 会报错。",
    ),
)
