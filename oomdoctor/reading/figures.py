"""The sizes in a sentence, identified by the words near them: what was requested, what was free, what the limit is.

rules/lexicon/figures.yaml gives the role each word assigns; a word directly after a size takes precedence over the last one before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.case.event import Value
from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.lexicon import Tag
from oomdoctor.reading.lines import TaggedLine, tagged
from oomdoctor.units import parse_size

_NO_LETTER = r"(?![A-Za-z0-9_])"
_UNIT = rf"(?:[KMGT]i?[Bb]|[kmgt]b|bytes?|B){_NO_LETTER}|[MGT](?=[\s,;.)\]/]|$)|字节"
_SIZE = re.compile(
    rf"(?<![A-Za-z0-9_.])(?<![A-Za-z0-9_]-)~?(?!\d{{1,3}}(?:\.\d)?B(?!\w))(?P<size>\d[\d,]{{0,24}}(?:\.\d{{1,6}})?\s?(?:{_UNIT}))"
)
_BARE = re.compile(r"(?<![\w.-])(?P<size>\d{4,20})(?![\w.:]\w|\s?tokens?\b)")
_BEHIND, _BEFORE = "behind-", "before-"
_OVER, _USED, _ANOTHER = "over", "used", "another"
_NAMELESS = (_OVER, _ANOTHER, "ignored")
_ASIDE = r"\s?(?:[)\]]|\([^()\n]{0,40}\))?\s?"
"""What may separate a size from the word after it."""
_COMPARED = r"\s?(?:/|>|vs\.?)\s?(?:~?\d|available|free|limit)"
_PAIR = r"\s?(?:/|>|vs\.?)\s?$"
_JOINED = r"[\s:=~(]{0,4}"
_TAKEN = 4
"""The number of words that belong to one that takes those after it."""
_MOST = 8
_LONGEST_PID = 9
_LONG = 7
"""A number without a unit, next to others with one, is a size if it has at least this many digits."""
_REACH, _NEAR = 60, 18
"""How far before a size, and before a number without a unit, a word can still say what it is."""


def figures_of(line: str, tree: LexiconNode) -> dict[str, Value]:
    """Return the figures in a sentence, identified by the words near them."""
    figures = _sizes(line)
    if not figures:
        return {}
    read = tagged(line, tree)
    before = list(_words_before(read))
    named = [read.span(tag) for tag in before if tag.concept == _BEFORE + _ANOTHER]
    figures = [figure for figure in figures if not any(first < figure.start() < last for first, last in named)]
    fields: dict[str, Value] = {}
    others: list[dict[str, int]] = []
    at = 0
    last: str | None = None
    for figure in figures[:_MOST]:
        start, end = figure.span()
        tag = _last_before(read, before, max(at, start - _REACH), figure)
        role = "limit" if last == _OVER and re.search(_PAIR, line[at:start]) else _role(read, tag, figure)
        at, last = end, role
        if role == _OVER:
            # What exceeds a limit is memory in use, if the sentence says so, or memory requested.
            role = _USED if _is_use(read, start) else "requested"
        size = parse_size(figure["size"].replace("字节", "bytes"))
        if size is None or role is None:
            continue
        if role == _ANOTHER and tag is not None:
            others += [{"pid": pid, "used_bytes": size} for pid in _whole_numbers(read, tag)]
        if role not in _NAMELESS:
            fields.setdefault(f"{role}_bytes", size)
    return {**fields, "other_processes": tuple(others)} if others else fields


def _whole_numbers(read: TaggedLine, tag: Tag) -> list[int]:
    words = (read.words[at].text for at in range(tag.first, tag.end))
    return [int(word) for word in words if word.isascii() and word.isdigit() and len(word) <= _LONGEST_PID]


def _sizes(line: str) -> list[re.Match[str]]:
    """Return the sizes in a sentence; a bare number counts if it is long."""
    figures = list(_SIZE.finditer(line))
    least = _LONG if figures else 0
    taken = {figure.start() for figure in figures}
    figures += [figure for figure in _BARE.finditer(line) if len(figure["size"]) >= least and figure.start() not in taken]
    return sorted(figures, key=re.Match.start)


def _words_before(read: TaggedLine) -> Iterator[Tag]:
    """Yield the words that give the following size a role, except those in a longer phrase or in a word that consumes the next ones."""
    taking = list(read.of(("takes-the-next",)))
    end = 0
    for tag in sorted(read.starting(_BEFORE), key=lambda tag: (tag.first, -tag.end)):
        if tag.first >= end and not any(_takes(read, other, tag) for other in taking):
            end = tag.end
            yield tag


def _takes(read: TaggedLine, taking: Tag, tag: Tag) -> bool:
    if not taking.end <= tag.first <= taking.end + _TAKEN - 1:
        return False
    return re.fullmatch(r"[\w ]*", read.text[read.span(taking)[1] : read.span(tag)[0]]) is not None


def _last_before(read: TaggedLine, before: Sequence[Tag], start: int, figure: re.Match[str]) -> Tag | None:
    """Return the last word at or after `start` that gives a size a role."""
    end = figure.start()
    near = [tag for tag in before if start <= read.span(tag)[0] < end]
    if not near:
        return None
    at = read.span(near[-1])[1]
    if figure.re is _BARE and (end - at > _NEAR or any(read.within(("another-clause",), at, end))):
        return None
    return near[-1]


def _role(read: TaggedLine, before: Tag | None, figure: re.Match[str]) -> str | None:
    """Return the role of a figure: from the word after it, or otherwise from the last one before it."""
    behind = _behind(read, figure.end())
    if behind is not None:
        return behind
    if figure.re is not _BARE and re.match(_COMPARED, read.text[figure.end() :]):
        return _OVER
    return None if before is None else before.concept.removeprefix(_BEFORE).replace("-", "_")


def _behind(read: TaggedLine, end: int) -> str | None:
    """Return the role given to a size by the word directly after it."""
    start = end
    for tag in read.of(("leads-to-a-role",)):
        first, last = read.span(tag)
        if end <= first and re.fullmatch(_ASIDE, read.text[end:first]):
            start = max(start, last)
    roles = [tag for tag in read.starting(_BEHIND) if _is_next(read, tag, end) or (start > end and _is_next(read, tag, start))]
    longest = max(roles, key=lambda tag: tag.end - tag.first, default=None)
    return None if longest is None else longest.concept.removeprefix(_BEHIND).replace("-", "_")


def _is_next(read: TaggedLine, tag: Tag, end: int) -> bool:
    first = read.span(tag)[0]
    return end <= first <= end + _REACH and re.fullmatch(_ASIDE, read.text[end:first]) is not None


def _is_use(read: TaggedLine, start: int) -> bool:
    """Return whether the word directly before a size says it was in use."""
    ends = (read.span(tag)[1] for tag in read.of(("before-used", "memory", "device-memory", "host-memory")))
    return any(end <= start and re.fullmatch(_JOINED, read.text[end:start]) for end in ends)


def is_shown(fields: dict[str, Value]) -> bool | None:
    """Return whether the figures show that more was requested than was available; None if they do not show either."""
    needed = next((size for name in ("requested_bytes", "used_bytes") if isinstance(size := fields.get(name), int)), None)
    available = next((size for name in ("limit_bytes", "free_bytes", "total_bytes") if isinstance(size := fields.get(name), int)), None)
    return None if needed is None or available is None else needed > available
