"""A text as a reader of it would undo its encoding, with the way back to the text as it stands.

Percent escapes, entities, escapes of JSON and characters that nobody sees stand between the signs of a secret and hide its form.
In the view they are undone, and what is found there is replaced where it stands in the text.
"""

from __future__ import annotations

import re
import sys

_INVISIBLE = frozenset(map(chr, (
    0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF,
    *range(0xE0000, 0xE0080),
)))  # fmt: skip
_HINTS = ("%", "&", "\\", "\x1b", "^[")
"""One of these stands in all that is encoded."""
_ENCODED = (
    r"(?:%[0-9A-Fa-f]{2}){1,2000}"
    r"|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos|nbsp|sol|commat|colon|equals);"
    r"|\\(?:u[0-9A-Fa-f]{4}|[\\/\"'])"
    r"|(?:\x1b|\\(?:x1b|033|e)|\^\[)\[[0-9;]{0,20}m"
)
_UNSEEN = f"[{''.join(sorted(_INVISIBLE))}]{{1,200}}"
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " ", "sol": "/", "commat": "@", "colon": ":", "equals": "="}
_LEVELS = 3
"""JSON in JSON, and an address in the value of an address in a log line."""


class PlainView:
    """The undone text, and for each of its signs where that sign stands in the original."""

    def __init__(self, text: str, places: list[tuple[int, int]]) -> None:
        self.text = text
        self._places = places

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the view, which is not empty, stands in the original."""
        return self._places[start][0], self._places[end - 1][1]


def plain_views(text: str) -> list[PlainView]:
    """Return the views of a text, the one in which most is undone first; none where nothing is encoded."""
    views: list[PlainView] = []
    patterns = [] if text.isascii() or _INVISIBLE.isdisjoint(text) else [_UNSEEN]
    patterns += [_ENCODED] * _LEVELS if any(hint in text for hint in _HINTS) else []
    places = [(at, at + 1) for at in range(len(text))] if patterns else []
    for pattern in patterns:
        undone, spans = _undone(text, pattern)
        if undone == text:
            continue
        places = [(places[start][0], places[end - 1][1]) for start, end in spans]
        text = undone
        views.insert(0, PlainView(text, places))
    return views


def _undone(text: str, pattern: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text with one level of encoding undone, and where each sign of it stood."""
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for match in re.finditer(pattern, text):
        parts.append(text[at : match.start()])
        spans += ((place, place + 1) for place in range(at, match.start()))
        for piece, start, end in _signs(match[0]):
            parts.append(piece)
            spans.append((match.start() + start, match.start() + end))
        at = match.end()
    parts.append(text[at:])
    spans += ((place, place + 1) for place in range(at, len(text)))
    return "".join(parts), spans


def _signs(encoded: str) -> list[tuple[str, int, int]]:
    """Return the signs behind an escape, each with its place in it; none behind what nobody sees."""
    if encoded[0] == "%":
        try:
            decoded = bytes.fromhex(encoded.replace("%", "")).decode()
        except UnicodeDecodeError:
            return [(sign, at, at + 1) for at, sign in enumerate(encoded)]
        out, at = [], 0
        for sign in decoded:
            out.append((sign, at, at + 3 * len(sign.encode())))
            at = out[-1][2]
        return out
    if encoded[0] == "&":
        name = encoded[1:-1]
        number = int(name[2:], 16) if name[:2] in ("#x", "#X") else int(name[1:]) if name[0] == "#" else ord(_NAMED[name])
        return [(chr(number) if number < sys.maxunicode else "\ufffd", 0, len(encoded))]
    if encoded[0] == "\\" and encoded[1] == "u":
        return [(chr(int(encoded[2:], 16)), 0, len(encoded))]
    return [(encoded[1], 0, 2)] if encoded[0] == "\\" and len(encoded) == 2 else []
