"""The sizes of a sentence, by the words beside them: what was asked for, what was free, what the limit is."""

from __future__ import annotations

import re

from oomdoctor.case.event import Value
from oomdoctor.units import parse_size

_UNIT = r"(?:[KMGT]i?[Bb]|[kmgt]b|bytes?|(?-i:B))\b|[KMGT](?=[\s,;.)\]/]|$)"
_SIZE = re.compile(rf"(?<![\w.])~?(?P<size>\d[\d,]{{0,24}}(?:\.\d{{1,6}})?\s?(?:{_UNIT}))")
_BARE = re.compile(r"(?<![\w.])(?P<size>\d{4,20})(?![\w.:]\w|\s?tokens?\b)")
_BESIDE = re.compile(
    r"\s?(?:[)\]]|\([^()\n]{0,40}\))?\s?(?:is |was |are |were |already |of \w{1,12} memory |of memory |VRAM |GPU RAM |peak )?"
    r"(?P<role>requested|required|needed|wanted|peak|available|free|left|remaining|in use|used|allocated|total|budget|limit|ceiling|cap|exceed\w{0,3}|would exceed|(?:larger|greater) than)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?P<largest_free_block>largest (?:contiguous )?free (?:block|chunk|region)\b)|(?P<ignored>largest\b[^,;\n]{0,20}|block size|alignment|align\b|missing|reserv\w{1,4} for)"
    r"|(?P<limit>(?:exceed\w{0,3}|beyond|(?:larger|greater|more|higher) than)(?: \S{1,20}){0,4}?|max(?:imum)?\b(?:[ _]\w{1,12}){0,4}|limit|ceiling|budget|\bcap\b|threshold|allowed)"
    r"|(?P<total>bank size|pool size|capacity|total)"
    r"|(?P<free>available|free|left|remaining|only|have|has)"
    r"|(?P<used>current|in use|used|occupied|usage|memory(?= \d))"
    r"|(?P<allocated>allocated)"
    r"|(?P<requested>would (?:use|require|be|need)|need\w{0,3}|requir\w{1,3}|request\w{0,3}|ask\w{0,3} for|allocat(?:e|ing)|size|estimated|projected|peak|grow to|grow|by|reserve|additional|\b(?:n|len)(?==)|attempt to|memory:)",
    re.IGNORECASE,
)
_ROLES = {
    "requested": "requested", "required": "requested", "needed": "requested", "wanted": "requested", "peak": "requested",
    "available": "free", "free": "free", "left": "free", "remaining": "free", "in use": "used", "used": "used", "allocated": "allocated", "total": "total",
    "budget": "limit", "limit": "limit", "ceiling": "limit", "cap": "limit",
}  # fmt: skip
_PAIR = re.compile(r"\s?(?:/|>|vs\.?)\s?$")
_LONG = 7
"""A number without a unit is a size beside others that have one if it has so many digits."""
_NEAR = 18


def figures_of(line: str) -> dict[str, Value]:
    """Return the figures of a sentence by the words beside them."""
    figures = list(_SIZE.finditer(line))
    least = _LONG if figures else 0
    taken = {figure.start() for figure in figures}
    figures += [figure for figure in _BARE.finditer(line) if len(figure["size"]) >= least and figure.start() not in taken]
    figures.sort(key=re.Match.start)
    fields: dict[str, Value] = {}
    at = 0
    last: str | None = None
    for figure in figures[:8]:
        size = parse_size(figure["size"])
        before = line[at : figure.start()]
        role = (
            "limit"
            if last == "over" and _PAIR.search(before)
            else _role(before, line[figure.end() : figure.end() + 60], figure.re is _BARE)
        )
        at, last = figure.end(), role
        if role == "over":
            # What exceeds a limit is what is used, where the sentence says so, or what was asked for.
            role = "used" if re.search(r"(?i)\b(?:memory|usage|current|used)\b[\s:=~(]{0,4}$", before) else "requested"
        if size is not None and role is not None and role != "ignored":
            fields.setdefault(f"{role}_bytes", size)
    return fields


def _role(before: str, after: str, bare: bool) -> str | None:
    """Return what a figure is: by the word behind it, else by the last one before it."""
    beside = _BESIDE.match(after)
    if beside is not None:
        word = beside["role"].lower()
        return _ROLES.get(word, "over")
    if re.match(r"\s?(?:/|>|vs\.?)\s?(?:~?\d|available|free|limit)", after) and not bare:
        return "over"
    words = list(_BEFORE.finditer(before[-60:]))
    if not words:
        return None
    if bare and len(before[-60:]) - words[-1].end() > _NEAR:
        return None
    return words[-1].lastgroup


def is_shown(fields: dict[str, Value]) -> bool | None:
    """Return whether the figures show that more was asked for than there was; None where they do not tell."""
    needed = next((size for name in ("requested_bytes", "used_bytes") if isinstance(size := fields.get(name), int)), None)
    available = next((size for name in ("limit_bytes", "free_bytes", "total_bytes") if isinstance(size := fields.get(name), int)), None)
    return None if needed is None or available is None else needed > available
