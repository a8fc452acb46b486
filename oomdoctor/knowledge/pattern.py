"""The patterns of rules: their small notation, and what a text must hold for one to match at all.

In a pattern a blank matches any run of white space (so a message that a terminal wrapped still matches) and `{size}`,
`{int}`, `{num}`, `{word}`, `{path}`, `{rest}` stand for the common kinds of value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

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
_ANYWHERE = 1 << 30
"""Farther than any text is long."""
_MOST_FORMS = 4
"""So many texts are looked for in place of one where a pattern leaves a character open: `[_-]` is one of two."""


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


class Needs(NamedTuple):
    """What a text must hold for a regular expression to match."""

    texts: list[str]
    """Every match holds one of these."""
    reach: int
    """It begins so many characters before one of them at most."""


def fragments(expression: str, *, most: int = _MOST_CHOICES) -> list[str] | None:
    """Return texts of which every match of a regular expression holds at least one; None where there are no such texts.

    Looking for them is a hundred times cheaper than trying the expression, or compiling it.
    """
    needs = find_needs(expression, most=most)
    return None if needs is None else needs.texts


def find_needs(expression: str, *, most: int = _MOST_CHOICES) -> Needs | None:
    """Return what every match of a regular expression holds, and where in it; None where there is no such text."""
    tree = sre_parse.parse(expression, re.MULTILINE)
    if tree.state.flags & re.IGNORECASE:
        return None
    return _needed(tree, 0, most)


def _needed(tree: Any, before: int, most: int, forms: int = _MOST_FORMS) -> Needs | None:
    """Return the longest run of characters, or where there is none the needs of each branch of one choice.

    `before` is how many characters a match can have before this part of it.
    """
    best = max(_runs(tree, before, forms), key=_least)
    if _least(best) >= _SHORTEST:
        return best
    for at, choice in _choices(tree, before):
        for each in dict.fromkeys((forms, 1)):
            needed = [_needed(branch, at, most, each) for branch in choice]
            known = [needs for needs in needed if needs is not None]
            texts = list(dict.fromkeys(text for needs in known for text in needs.texts))
            if len(known) == len(needed) and len(texts) <= most:
                return Needs(texts, max(needs.reach for needs in known))
    return None


def _least(run: Needs) -> int:
    """Return the length of the shortest form of a run."""
    return min(map(len, run.texts))


def _pieces(tree: Any, before: int) -> Iterator[tuple[int, Any, Any]]:
    """Yield the pieces of a pattern, each with how many characters a match can have before it."""
    for number, (code, value) in enumerate(tree):
        yield before, code, value
        before = min(before + tree[number : number + 1].getwidth()[1], _ANYWHERE)


def _choices(tree: Any, before: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield the choices of which every match takes one branch."""
    for at, code, value in _pieces(tree, before):
        if code is sre_constants.BRANCH:
            yield at, value[1]
        elif code is sre_constants.SUBPATTERN and not value[1] and not value[2]:
            yield from _choices(value[3], at)


def _runs(tree: Any, before: int, most: int) -> list[Needs]:
    """Return the runs of characters that are in every match, in order; each in its forms, of which there are at most `most`."""
    runs = [Needs([""], before)]
    for at, code, value in _pieces(tree, before):
        if code is sre_constants.AT:
            continue
        is_group = code is sre_constants.SUBPATTERN and not value[1] and not value[2]
        first, *others = _runs(value[3], at, most) if is_group else [Needs(_characters(code, value), at)]
        if len(runs[-1].texts) * len(first.texts) > most:
            runs.append(Needs([""], at))
        if 0 < len(first.texts) <= most:
            start = first if runs[-1].texts == [""] else runs[-1]
            runs[-1] = Needs([text + more for text in runs[-1].texts for more in first.texts], start.reach)
            runs += others
        else:
            runs.append(Needs([""], at))
    return runs


def _characters(code: Any, value: Any) -> list[str]:
    """Return what a piece of a pattern stands for, one character or another; none where they are not listed."""
    if code is sre_constants.LITERAL:
        return [chr(value)]
    if code is sre_constants.IN and all(kind is sre_constants.LITERAL for kind, _ in value):
        return [chr(char) for _, char in value]
    return []
