"""How many ways a regular expression may try on the worst text: what tells a slow one without running it.

A repetition is given back sign by sign only where what follows could begin inside of it; then its tries multiply those of what
follows. A repetition of something that can be matched in several ways is their power. So `(?:a|aa){1,60}$` and five times
`[a-z]{1,40}` in a row come out as what they are, and `[a-z]{1,40},` as one way.
"""

from __future__ import annotations

import re
from typing import Any

from oomdoctor.knowledge.pattern import sre_constants as codes
from oomdoctor.knowledge.pattern import sre_parse

Signs = frozenset[int]

_OTHER = 256
"""Stands for every sign that is not Latin-1."""
_ALL: Signs = frozenset(range(_OTHER + 1))
_NONE: Signs = frozenset()
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_UNBACKED = {getattr(codes, name, None) for name in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP")}
_ENOUGH = 1e30
"""Numbers of tries are not told apart above this one."""
_WORD = 3
_LONGEST = 2000
"""Signs of a text that a repetition is taken to run over at most."""


def _category(pattern: str) -> Signs:
    return frozenset(code for code in range(_OTHER) if re.match(pattern, chr(code)))


_CATEGORIES: dict[Any, Signs] = {
    codes.CATEGORY_DIGIT: _category(r"\d"),
    codes.CATEGORY_SPACE: _category(r"\s"),
    codes.CATEGORY_WORD: _category(r"\w") | {_OTHER},
}
_NEGATED = {
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}


def tries(pattern: str, flags: int = re.MULTILINE) -> float:
    """Return about how often one part of a pattern is tried at one place of the worst text. Raise re.error where it is none."""
    seen = [1.0]
    _sequence(list(sre_parse.parse(pattern, flags)), _NONE, 1, seen)
    return max(seen)


def _sequence(items: list[Any], follow: Signs, length: int, seen: list[float]) -> float:
    """Return the tries of items that stand directly behind one another, of several such runs the most.

    Words between them part two runs: the worst text of one is not that of the other. `follow` is what may come behind the items,
    of which `length` signs are fixed; `seen` gets every number that is found on the way.
    """
    most = run = 1.0
    for number, (code, value) in enumerate(items):
        rest = items[number + 1 :]
        after = _first(rest) | (follow if _may_be_empty(rest) else _NONE)
        if any(inner is codes.AT for inner, _ in rest[:1]):
            after = _ALL
        fixed = _fixed(rest) or (length if not rest else 1)
        ways = _item(code, value, after, fixed, seen)
        run = min(_ENOUGH, run * ways) if ways > 1 else 1.0
        most = max(most, run)
        run = run if fixed <= 1 else 1.0
    seen.append(most)
    return most


def _item(code: Any, value: Any, after: Signs, length: int, seen: list[float]) -> float:
    if code in _REPEATS:
        low, high, inner = value
        return _repetition(low, min(int(high), _LONGEST), list(inner), after, length, seen)
    if code is codes.SUBPATTERN:
        return _sequence(list(value[-1]), after, length, seen)
    if code is codes.BRANCH:
        branches = [list(branch) for branch in value[1]]
        ways = [_sequence(branch, after, length, seen) for branch in branches]
        # Branches that begin alike are tried one after the other at the same place.
        alike = [
            sum(way for other, way in zip(branches, ways) if _first(other) & _first(branch) or not _first(other)) for branch in branches
        ]
        return max(alike) if after and _differ(branches) else max(ways)
    return 1.0


def _repetition(low: int, high: int, inner: list[Any], after: Signs, length: int, seen: list[float]) -> float:
    begin = _first(inner)
    if high <= 1:
        ways = _sequence(inner, after, length, seen)
        return 1.0 if _has_word(inner) else ways * (2.0 if low < high and begin & after else 1.0)
    # A turn in the middle is followed by the next one, and only the last one by what comes after all.
    again = _power(_turn(inner, begin, seen), high - 1)
    last = _turn(inner, begin | after, seen)
    seen.append(again)
    turns = (high - low) / length + 1 if begin & after else 1.0
    return float(min(_ENOUGH, turns * last * again))


def _turn(inner: list[Any], after: Signs, seen: list[float]) -> float:
    """Return the tries of one turn of a repetition; a text of one length is matched in one way, unless it is a choice."""
    return 1.0 if _length(inner) is not None and not _choices(inner) else _sequence(inner, after, 1, seen)


def _choices(items: list[Any]) -> bool:
    return any(code is codes.BRANCH or (code is codes.SUBPATTERN and _choices(list(value[-1]))) for code, value in items)


def _has_word(items: list[Any]) -> bool:
    """Return whether a word of plain signs stands in items, without which none of them counts."""
    return any(_fixed(items[number:]) >= _WORD for number in range(len(items)))


def _power(base: float, exponent: int) -> float:
    try:
        return min(_ENOUGH, base**exponent)
    except OverflowError:
        return _ENOUGH


def _differ(branches: list[list[Any]]) -> bool:
    """Return whether branches take texts of different lengths, so that what follows is tried at several places."""
    lengths = {_length(branch) for branch in branches}
    return len(lengths) > 1 or None in lengths


def _length(items: list[Any]) -> int | None:
    """Return how many signs items take; None where that differs."""
    total = 0
    for code, value in items:
        if code in _REPEATS or code in _UNBACKED:
            if not isinstance(value, tuple) or value[0] != value[1]:
                return None
            length = _length(list(value[2]))
            if length is None:
                return None
            total += length * int(value[0])
        elif code is codes.SUBPATTERN:
            length = _length(list(value[-1]))
            if length is None:
                return None
            total += length
        elif code is codes.BRANCH:
            lengths = {_length(list(branch)) for branch in value[1]}
            length = lengths.pop()
            if lengths or length is None:
                return None
            total += length
        elif code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            total += 1
        elif code not in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
            return None
    return total


def _fixed(items: list[Any]) -> int:
    """Return with how many plain signs in a row items begin: what repeats before them can stop only where these stand."""
    count = 0
    for code, value in items:
        if code is codes.SUBPATTERN:
            inner = list(value[-1])
            run = _fixed(inner)
            count += run
            if run < len(inner):
                break
        elif code is codes.LITERAL:
            count += 1
        else:
            break
    return count


def _may_be_empty(items: list[Any]) -> bool:
    return all(_is_optional(code, value) for code, value in items)


def _is_optional(code: Any, value: Any) -> bool:
    if code in _REPEATS or code is getattr(codes, "POSSESSIVE_REPEAT", None):
        return value[0] == 0 or _may_be_empty(list(value[2]))
    if code is codes.SUBPATTERN:
        return _may_be_empty(list(value[-1]))
    if code is codes.BRANCH:
        return any(_may_be_empty(list(branch)) for branch in value[1])
    return code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT, codes.GROUPREF, codes.GROUPREF_EXISTS)


def _first(items: list[Any]) -> Signs:
    """Return the signs with which a match of items can begin."""
    signs: Signs = _NONE
    for code, value in items:
        signs |= _begins(code, value)
        if not _is_optional(code, value):
            break
    return signs


def _begins(code: Any, value: Any) -> Signs:
    if code is codes.LITERAL:
        return frozenset({min(int(value), _OTHER)})
    if code is codes.NOT_LITERAL:
        return _ALL - {min(int(value), _OTHER)}
    if code is codes.ANY:
        return _ALL - {10}
    if code is codes.IN:
        return _class(value)
    if code in _REPEATS or code is getattr(codes, "POSSESSIVE_REPEAT", None):
        return _first(list(value[2]))
    if code is codes.SUBPATTERN:
        return _first(list(value[-1]))
    if code is codes.BRANCH:
        return frozenset().union(*(_first(list(branch)) for branch in value[1]))
    if code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
        return _NONE
    return _ALL


def _class(parts: list[Any]) -> Signs:
    signs: set[int] = set()
    for code, value in parts:
        if code is codes.LITERAL:
            signs.add(min(value, _OTHER))
        elif code is codes.RANGE:
            signs.update(range(min(value[0], _OTHER), min(value[1], _OTHER) + 1))
        elif code is codes.CATEGORY:
            signs |= _ALL - _CATEGORIES[_NEGATED[value]] if value in _NEGATED else _CATEGORIES.get(value, _ALL)
    return _ALL - signs if parts and parts[0][0] is codes.NEGATE else frozenset(signs)
