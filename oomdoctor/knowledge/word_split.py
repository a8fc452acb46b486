"""A text as the words that it is made of: identifiers are split, signs between words are left out.

`OutOfMemoryError`, `out_of_memory` and `Out-of-memory` are the same words; a Chinese sign is a word of its own.
"""

from __future__ import annotations

import re

from msgspec import Struct

_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ\u0100-\u024f"
_IDEOGRAPH = r"\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = (
    r"(?<![\w.])-\d+(?:[.,]\d+)*(?![\w.]*[A-Za-z])|\d+(?:[.,]\d+)*"  # -9, 1.5: a number is one word
    rf"|[{_UPPER}{_LOWER}]+'[{_LOWER}]+"  # couldn't
    rf"|[{_UPPER}]{{2,}}(?:s|ed)(?![{_LOWER}])"  # OOMs, SIGKILLed
    rf"|[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+"  # OOM|Killed, cuda|Malloc
    rf"|[{_IDEOGRAPH}]|[^\W\d_{_UPPER}{_LOWER}{_IDEOGRAPH}]+"
)
NUMBER = "#"
"""Stands in a phrase of the lexicon for any number."""
_APOSTROPHES = str.maketrans("’`", "''")


class LineWord(Struct, frozen=True, gc=False):
    """One word in small letters, and where it stands."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[LineWord]:
    """Return the words of a text in their order."""
    return [LineWord(match[0].lower(), match.start(), match.end()) for match in re.finditer(_WORD, text.translate(_APOSTROPHES))]
