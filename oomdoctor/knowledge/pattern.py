"""The patterns of rules: their small notation, and what a text must hold for one to match at all.

In a pattern a blank matches any run of white space (so a message that a terminal wrapped still matches) and `{size}`,
`{int}`, `{num}`, `{word}`, `{path}`, `{rest}` stand for the common kinds of value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

# The parser of regular expressions has no public name; these are its names before and since Python 3.11.
sre_parse: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
sre_constants: Any = import_module("re._constants" if sys.version_info >= (3, 11) else "sre_constants")

MACROS = {
    "size": r"\d[\d,.]{0,24}\s?(?:[KMGTP]i?B?|[kmg]i?[bB]?|[bB]ytes?|B)?",
    "int": r"-?\d{1,20}",
    "num": r"-?\d{1,20}(?:\.\d{1,20})?",
    "word": r"[^\s,;:'\"()\[\]{}<>]{1,200}",
    "path": r"[^\s'\"<>]{1,400}",
    "rest": r"[^\n]{0,300}",
}
_MACRO = re.compile(r"\{(" + "|".join(MACROS) + r")\}")
_CLASS = re.compile(r"\[\^?\]?")
BLANK = r"\s{1,100}"
"""What a blank of a pattern matches; bounded, so that two neighbours cannot try a long run against each other."""
_REPEATED = {" ?": r"\s{0,100}", " *": r"\s{0,100}", " +": BLANK}
"""The same where the pattern says itself how often the blank stands there."""
_COUNTED = re.compile(r" (?=\{(?:\d+,?\d*|,\d+)\})")
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\[\\]", re.DOTALL)
"""An escaped character, a class or a character of its own."""
_DEPENDENT = re.compile(r"\\[1-9]|\(\?\(|^\(\?[a-z]+\)")
"""Groups that are named by number, and flags for all branches."""
_SHORTEST = 4
_MOST_CHOICES = 12


def expand(pattern: str) -> str:
    """Return the regular expression behind a pattern of a rule."""
    pattern = _MACRO.sub(lambda macro: f"(?:{MACROS[macro[1]]})", pattern)
    out: list[str] = []
    inside = False
    at = 0
    while at < len(pattern):
        char = pattern[at]
        piece = char
        if char == "\\":
            piece = pattern[at : at + 2]
        elif char == "[" and not inside:
            inside = True
            opening = _CLASS.match(pattern, at)
            piece = opening[0] if opening else char
        elif char == "]":
            inside = False
        elif char == " " and not inside:
            repeated = _REPEATED.get(pattern[at : at + 2])
            out.append(repeated or ("[ ]" if _COUNTED.match(pattern, at) else BLANK))
            at += 2 if repeated else 1
            continue
        out.append(piece)
        at += len(piece)
    return "".join(out)


def alternatives(expression: str) -> list[str]:
    """Return the branches of a regular expression; one alone where they depend on each other, and none of an empty one."""
    if _DEPENDENT.search(expression):
        return [expression]
    out = [""]
    depth = 0
    for piece in _PIECE.findall(expression):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth:
            out.append("")
        else:
            out[-1] += piece
    return out if expression else []


def fragments(expression: str, *, most: int = _MOST_CHOICES) -> list[str] | None:
    """Return texts of which every match of a regular expression holds at least one; None where there are no such texts.

    Looking for them is a hundred times cheaper than trying the expression, or compiling it.
    """
    tree = sre_parse.parse(expression, re.MULTILINE)
    if tree.state.flags & re.IGNORECASE:
        return None
    return _needed(tree, most)


def _needed(tree: Any, most: int) -> list[str] | None:
    """Return the longest run of plain characters, or where there is none the needed texts of each branch of one choice."""
    best = max(_runs(tree), key=len, default="")
    if len(best) >= _SHORTEST:
        return [best]
    for choice in _choices(tree):
        needed = [_needed(branch, most) for branch in choice]
        texts = [text for branch in needed for text in branch or ()]
        if all(needed) and len(texts) <= most:
            return texts
    return None


def _choices(tree: Any) -> Iterator[list[Any]]:
    """Yield the choices of which every match takes one branch."""
    for code, value in tree:
        if code is sre_constants.BRANCH:
            yield value[1]
        elif code is sre_constants.SUBPATTERN and not value[1] and not value[2]:
            yield from _choices(value[3])


def _runs(tree: Any) -> list[str]:
    """Return the runs of plain characters that are in every match, in order."""
    runs = [""]
    for code, value in tree:
        if code is sre_constants.LITERAL:
            runs[-1] += chr(value)
        elif code is sre_constants.SUBPATTERN and not value[1] and not value[2]:
            inner = _runs(value[3])
            runs[-1] += inner[0]
            runs += inner[1:]
            if len(inner) == 1:
                continue
        elif code is not sre_constants.AT:
            runs.append("")
    return runs
