"""Texts that are not all UTF-8 as UTF-8: UTF-16 and UTF-32, with a mark or without, also where a shell appended one to the other.

Narrow text is ASCII, UTF-8 or anything of single bytes and passes as it is. Where wide text begins and ends is told by a run of
plain characters: of two or four bytes of which all but one are NUL, or of one byte each.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

_PLAIN = rb"[\t\n\r\x20-\x7e]"
_WIDE = (
    rb"(?P<utf_32_le>\xff\xfe\0\0|(?:@\0\0\0){4})|(?P<utf_32_be>\0\0\xfe\xff|(?:\0\0\0@){4})"
    rb"|(?P<utf_16_le>\xff\xfe|(?:@\0){8})|(?P<utf_16_be>\xfe\xff|(?:\0@){8})"
).replace(b"@", _PLAIN)
_NARROW = _PLAIN + rb"{32}"
"""So many plain bytes in a row are no ideographs in UTF-16."""
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_RAW = 64 << 10
_STEP = 8 << 10
_KEPT = 64
"""So many bytes wait for what follows: a run that begins in them is seen whole."""

SAMPLE = 256
"""Bytes that show whether a text is wide."""

_BLANKS = rb"\xc2\xa0|\xe2\x80[\x87\xaf]|\xe3\x80\x80|&nbsp;|&#160;|&#x[aA]0;"
"""No-break and ideographic blanks, as characters and as HTML writes them: web pages and issue forms put them into what is copied."""


def is_wide(sample: bytes) -> bool:
    """Return whether some bytes of a text are UTF-16 or UTF-32."""
    return (b"\0" in sample or sample[:2] in _MARKS) and re.search(_WIDE, sample) is not None


def with_plain_blanks(data: bytes) -> bytes:
    """Return a text with blanks that are one byte: messages are known by their words and the plain blanks between them."""
    if b"\xc2" in data or b"&" in data or b"\xe2" in data or b"\xe3" in data:
        return re.sub(_BLANKS, b" ", data)
    return data


class Watched:
    """A stream that is looked at here and there while it passes; from where it turns wide it comes as UTF-8."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._is_narrow = True

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer from its start and return how many bytes of it."""
        count = int(self._reader.readinto(buffer) or 0)
        if self._is_narrow and any(is_wide(bytes(buffer[at : at + SAMPLE])) for at in (0, count >> 1, max(0, count - SAMPLE))):
            self._is_narrow = False
            self._reader = AsUtf8(self._reader, bytes(buffer[:count]))
            count = int(self._reader.readinto(buffer))
        return count


class AsUtf8:
    """A reader of wide and narrow text as UTF-8; `data` was read of it already."""

    def __init__(self, reader: Any, data: bytes = b"") -> None:
        self._reader = reader
        self._data = data
        self._decoder: codecs.IncrementalDecoder | None = None
        self._width = 1
        self._zeros = 0
        """Which byte of a character is NUL in ASCII."""
        self._held = memoryview(b"")
        self._has_ended = False

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer from its start and return how many bytes of it."""
        while not self._held and not self._has_ended:
            raw = bytearray(_RAW)
            count = self._reader.readinto(memoryview(raw)) or 0
            self._data += raw[:count]
            self._has_ended = not count
            self._held = memoryview(b"".join(iter(self._piece, b"")))
        part = self._held[: len(buffer)]
        buffer[: len(part)] = part
        self._held = self._held[len(part) :]
        return len(part)

    def _piece(self) -> bytes:
        """Return some text up to where its width changes at the latest; empty where more must be read first."""
        if self._decoder is None:
            return self._narrow()
        head = self._data[:_STEP]
        if len(head) == _STEP and not head[self._zeros :: self._width].strip(b"\0"):  # nothing but ASCII, so nothing narrow
            self._data = self._data[_STEP:]
            return self._decoder.decode(head).encode()
        found = re.compile(_NARROW).search(self._data, 0, _STEP + _KEPT)
        if found is not None:
            end = found.start()
        else:
            end = len(self._data) if self._has_ended else min(_STEP, max(0, len(self._data) - _KEPT))
        end += -end % self._width  # a character that begins before the narrow text belongs to the wide one
        part, self._data = self._data[:end], self._data[end:]
        text = self._decoder.decode(part, found is not None or self._has_ended).encode("utf-8", "replace")
        if found is not None:
            self._decoder = None
        return text or (self._narrow() if found is not None else b"")

    def _narrow(self) -> bytes:
        """Return the bytes before the next wide text."""
        marked = [at for mark in (b"\0", *_MARKS) if (at := self._data.find(mark)) >= 0]
        found = re.compile(_WIDE).search(self._data, max(0, min(marked) - 1)) if marked else None
        if found is not None:
            end = found.start()
        else:
            end = len(self._data) if self._has_ended else max(0, len(self._data) - _KEPT)
        text, self._data = self._data[:end], self._data[end:]
        if found is not None:
            self._turn(str(found.lastgroup).replace("_", "-"))
        return text or (self._piece() if found is not None else b"")

    def _turn(self, encoding: str) -> None:
        """Go on in a wide encoding, behind its mark."""
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._width = 4 if "32" in encoding else 2
        self._zeros = self._width - 1 if encoding.endswith("le") else 0
        self._data = self._data.removeprefix("\ufeff".encode(encoding))
