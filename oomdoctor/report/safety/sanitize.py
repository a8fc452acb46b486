"""Text from logs made harmless: no control characters, no escape sequences, no reordering marks, a sensible length."""

from __future__ import annotations

import re
import string

_ESCAPES = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]?"  # CSI: colours, cursor moves
    r"|[\x1b][\]PX^_][^\x07\x1b\x9c\n]{0,512}(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS and kin: titles, links
    r"|\x1b[ -/]{0,4}[0-~]?"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]?"
)
_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, bidi, annotations
    "\U000e0000-\U000e007f]"
)
_BROKEN = re.compile("[\ud800-\udfff\ufffe\uffff]")
_BLANKS = re.compile(r"[ \t\n\xa0]{2,}|[\t\n\xa0]")
_CUT = "…"
_SIGNS_OF_A_WORD = string.ascii_letters + string.digits + string.punctuation


def clean(text: str, limit: int) -> str:
    """`text` on as many lines as it has, without anything that a terminal or a browser would act upon."""
    # Only the part that can survive the cut is looked at: a line of a gigabyte costs no more than one of a page.
    text = text[: limit * 4 + 1024]
    if text.isprintable():  # nothing that is searched for here is printable, and most texts are nothing else
        return cut(text, limit)
    text = _BREAKS.sub("\n", _ESCAPES.sub("", text)).expandtabs(4)
    text = _BROKEN.sub("\ufffd", _FORBIDDEN.sub("", text))
    return cut(text, limit)


def clean_line(text: str, limit: int) -> str:
    """`text` on one line, runs of blanks as one."""
    return cut(_BLANKS.sub(" ", clean(text, limit * 2)).strip(), limit)


def without_unseen(text: str) -> str:
    """`text` without escapes and without the characters that have no width or turn the order round; its blanks stay."""
    return text if text.isascii() and text.isprintable() else _FORBIDDEN.sub("", _ESCAPES.sub("", text))


def cut(text: str, limit: int) -> str:
    """Return at most the first `limit` characters, with a mark where something is missing.

    The cut is between words, if that leaves half of the text: the first half of a key is not known for a key any more.
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    if text[limit - 1] in _SIGNS_OF_A_WORD and len(words := kept.rstrip(_SIGNS_OF_A_WORD)) > limit // 2:
        kept = words
    return kept.rstrip() + _CUT
