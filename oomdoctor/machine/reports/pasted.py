"""Pasted text as the lines that a tool printed: without escapes, quoting, markup and the characters that word processors put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

LIMIT = 4 << 20
"""Bytes of a text that are read; a report of an environment has a hundredth of that."""
_LINES = 50_000
_LONGEST = 1000
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_QUOTED = re.compile(r"^(?: {0,3}> ?){1,8}")
_TAG = re.compile(r"</?(?:details|summary|pre|code|p|b|i|strong|em|sub|div|span|ul|ol|li|h[1-6]|br|hr)\b[^<>\n]{0,100}>", re.IGNORECASE)
_FENCE = re.compile(r"^\s{0,8}(?:`{3,}|~{3,})")
_MARKUP_SIGN = re.compile(r"\\(?=[`_*\[\]<>|#-])")


def decode_text(data: bytes) -> str:
    """Bytes as text. Windows shells redirect into UTF-16; anything else is UTF-8 or nearly so."""
    data = data[:LIMIT]
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def clean_lines(text: str) -> Iterator[str]:
    """Read the lines of a text, cleaned, blank ones included. Indentation stays: `nvidia-smi -q` is a tree."""
    markup = "</" in text or "&lt;" in text or "<br" in text
    for number, line in enumerate(text[:LIMIT].splitlines()):
        if number >= _LINES:
            return
        line = _ESCAPE.sub("", line[:_LONGEST])
        line = _QUOTED.sub("", _CONTROL.sub("", line).replace("\u00a0", " ").expandtabs(4))
        if markup:
            line = unescape(_TAG.sub("", line))
        yield "" if _FENCE.match(line) else _MARKUP_SIGN.sub("", line.rstrip())
