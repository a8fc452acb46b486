"""A JSON text -> the places of its keys and values. What strict JSON forbids, such as a comment, is no reason to stop."""

from __future__ import annotations

from bisect import bisect_left
from re import Match, finditer

from oomdoctor.configs.edit.change import UnsafeEdit
from oomdoctor.configs.edit.tree import Open, Spot, hang
from oomdoctor.configs.parsed_config import DEEPEST, MOST_KEYS
from oomdoctor.configs.readers.json import TOKEN, unescaped


def json_document(text: str) -> Spot:
    """The one value of the text. Raises Unsafe where its brackets do not match, or it is too deep or large for a config."""
    breaks = [found.start() for found in finditer("\n", text)]
    roots: list[Spot] = []
    stack: list[Open] = []
    at = count = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        line = 1 + bisect_left(breaks, at)
        count += 1
        if found is None or len(roots) > 1:
            raise UnsafeEdit(f"line {line} is not valid JSON", f"第 {line} 行不是合法的 JSON")
        if len(stack) > DEEPEST or count > 8 * MOST_KEYS:
            raise UnsafeEdit("this file is larger or more deeply nested than a config", "文件过大或嵌套过深，不像配置文件")
        at = found.end()
        _take(found, line, stack, roots)
    if stack or len(roots) != 1:
        raise UnsafeEdit("the brackets of this file do not match", "文件里的括号没有配对")
    return roots[0]


def _take(found: Match[str], line: int, stack: list[Open], roots: list[Spot]) -> None:
    token, start, end = found[0], found.start(), found.end()
    kind = found.lastgroup
    if kind in ("string", "word"):
        quote = token[0] if kind == "string" else ""
        hang(Spot("scalar", start, end, line, quote, unescaped(token) if quote else token), stack, roots)
    elif kind == "mark" and token in "{[":
        spot = Spot("mapping" if token == "{" else "sequence", start, end, line, "{")
        hang(spot, stack, roots)
        stack.append(Open(spot))
    elif kind == "mark" and token in "}]":
        if not stack or (stack[-1].spot.kind == "mapping") != (token == "}"):
            raise UnsafeEdit("the brackets of this file do not match", "文件里的括号没有配对")
        stack.pop().spot.end = end
