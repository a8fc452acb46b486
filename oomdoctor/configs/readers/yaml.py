"""YAML texts as a tree with places, and YAML configs as settings. Read as a stream of events: nothing is constructed."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from oomdoctor.case.settings import ConfigIssue, Scalar
from oomdoctor.case.text import Text
from oomdoctor.configs.parsed_config import LONGEST, ParsedConfig, duplicate_key, form_issue, limits_exceeded
from oomdoctor.configs.readers.tree import BeyondLimits, Kind, Node, TreeBuilder
from oomdoctor.configs.readers.tree_settings import SettingsReader

_ATTEMPTS = 4
_FORBIDDEN = "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
"""A pattern, compiled by the first text that is read: that takes 5 ms."""
_LONE_RETURN = re.compile(r"\r(?!\n)")
_TOP_KEY = re.compile(r"^[A-Za-z_][\w.-]{0,100}:(?:\s|$)", re.MULTILINE)
_MERGE = "<<"
_WORDS: dict[str, Scalar] = {
    "yes": True, "Yes": True, "YES": True, "on": True, "On": True, "ON": True,
    "no": False, "No": False, "NO": False, "off": False, "Off": False, "OFF": False,
    "null": None, "Null": None, "NULL": None, "~": None, "": None,
}  # fmt: skip
"""YAML 1.1, which PyYAML reads: a bare `no` is false."""


_KINDS: dict[str, Kind] = {
    "ScalarEvent": "scalar",
    "MappingStartEvent": "mapping",
    "SequenceStartEvent": "sequence",
    "AliasEvent": "alias",
}


class YamlTree(Struct):
    """The documents of a text, and what is wrong with it."""

    documents: list[Node]
    errors: list[tuple[int, str]]
    """The line of each mistake, and the problem as the parser names it. What stands before and after one is in the tree."""
    duplicates: list[Node]
    """The keys that stand twice in one block."""
    count: int
    """The keys and values."""
    beyond: int | None = None
    """The line where the text is larger or deeper than a config can be; the rest was not read."""


def parse_yaml(text: str) -> YamlTree:
    """Return the tree of a YAML text, with the offsets and lines of `text` itself."""
    text = _LONE_RETURN.sub("\n", re.sub(_FORBIDDEN, "\ufffd", text))  # one character for one, so that the places stay
    builder = TreeBuilder()
    errors: list[tuple[int, str]] = []
    rest: int | None = 0
    try:
        for _ in range(_ATTEMPTS):
            if rest is not None:
                rest = _read_from(builder, text, rest, errors)
    except BeyondLimits as limit:
        return YamlTree(builder.roots, errors, builder.twice, builder.count, limit.line)
    return YamlTree(builder.roots, errors, builder.twice, builder.count)


def read_yaml(file: str, text: str) -> ParsedConfig:
    """Return the settings of a YAML text. What stands before and after a mistake is kept."""
    text = _LONE_RETURN.sub("\n", text.removeprefix("\ufeff"))
    tree = parse_yaml(text)
    last = text.count("\n") + 1
    issues = [_broken(file, min(line, last), problem) for line, problem in tree.errors]
    issues += [duplicate_key(file, key.line, key.value[:LONGEST]) for key in tree.duplicates if key.value != _MERGE]
    settings, beyond = SettingsReader(file, _WORDS, _MERGE), tree.beyond
    try:
        for document in tree.documents:
            settings.read(document)
    except BeyondLimits as limit:
        beyond = limit.line
    issues += [] if beyond is None else [limits_exceeded(file, beyond)]
    return ParsedConfig(file=file, form="yaml", written=tuple(settings.written), issues=tuple(issues))


def _read_from(builder: TreeBuilder, text: str, start: int, errors: list[tuple[int, str]]) -> int | None:
    """Read from the offset `start`; where a mistake stops it, the offset of the next key at the left edge."""
    import yaml  # noqa: PLC0415 - only who has a config pays for YAML

    above = text.count("\n", 0, start)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        event: Any
        for event in yaml.parse(text[start:], Loader=loader):
            kind = type(event).__name__
            if kind in _KINDS:
                builder.add(_node(event, _KINDS[kind], start, above))
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                builder.close(start + event.end_mark.index)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = above + (mark.line if mark is not None else 0) + 1
        errors.append((line, str(getattr(error, "problem", None) or "not YAML")))
        builder.stack.clear()
        following = _TOP_KEY.search(text, _line_start(text, line + 1))
        return following.start() if following else None
    return None


def _node(event: Any, kind: Kind, start: int, above: int) -> Node:
    node = Node(kind, start + event.start_mark.index, start + event.end_mark.index, above + event.start_mark.line + 1)
    if kind == "alias":
        node.value, node.shared = event.anchor, True
        return node
    node.anchor, node.shared = event.anchor, event.anchor is not None or event.tag is not None
    if kind == "scalar":
        node.style, node.value = event.style or "", event.value
    else:
        node.style = "{" if event.flow_style else ""
    return node


def _line_start(text: str, line: int) -> int:
    """Return the offset of a 1-based line; the end of the text where it has fewer."""
    at = 0
    for _ in range(line - 1):
        end = text.find("\n", at)
        if end < 0:
            return len(text)
        at = end + 1
    return at


def _broken(file: str, line: int, problem: str) -> ConfigIssue:
    if "'\\t'" in problem or "tab character" in problem:
        what = Text("there is a tab where YAML allows only spaces", "这里用了制表符，YAML 只允许用空格缩进")
    else:
        what = Text(f"this is not valid YAML: {problem}", f"这里不是合法的 YAML：{problem}")
    why = Text(
        "The framework rejects the whole file; oomdoctor continues with the keys after it.",
        "框架会拒绝整个文件；oomdoctor 会跳过这里继续读后面的键。",
    )
    return form_issue("yaml-broken", file, line, "", what, why)
