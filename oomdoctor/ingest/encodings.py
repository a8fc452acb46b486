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
_NARROW = b"p" * 32
"""So many plain bytes in a row are no ideographs in UTF-16."""
_STRIDE = 32
_FEW = 64
_PLAIN_OR_NOT = bytes(ord("p") if byte in b"\t\n\r" or 0x20 <= byte <= 0x7E else 0 for byte in range(256))
_KINDS = bytes(ord("p") if byte in b"\t\n\r" or 0x20 <= byte <= 0x7E else ord("x") if byte else 0 for byte in range(256))
_RUNS = (b"p\0" * 8, b"\0p" * 8, b"p\0\0\0" * 4, b"\0\0\0p" * 4)
"""What wide text without a mark is told by, with each byte as its kind."""
_CHINESE = r"(?=[^\n]{0,20000}[^\0-\x7f][^\n]{0,20000}[^\0-\x7f])[\0-\x7f\u2010-\u203b\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]*"
"""Two ideographs or marks of Chinese at least, and nothing else that is not ASCII: other bytes make rarer characters of GBK."""
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_RAW = 64 << 10
_LONGEST_LINE = 1 << 20
_KEPT = 64
"""So many bytes wait for what follows: a run that begins in them is seen whole."""

SAMPLE = 256
"""Bytes that show whether a text is wide."""

NOT_TEXT = "not text"
_CONTROLS = bytes((*range(1, 8), *range(14, 27), *range(28, 32), 127))
"""What terminals, progress bars and encodings have no use for."""
_MOST_CONTROLS = 0.04

_BLANKS = rb"\xc2\xa0|\xe2\x80[\x87\xaf]|\xe3\x80\x80|&nbsp;|&#160;|&#x[aA]0;"
"""No-break and ideographic blanks, as characters and as HTML writes them: web pages and issue forms put them into what is copied."""


def is_binary(start: bytes) -> bool:
    """Return whether the beginning of a source is no text in any encoding; holes of NUL are not counted, a disk leaves them in logs."""
    return len(start) - len(start.translate(None, _CONTROLS)) > _MOST_CONTROLS * len(start)


def is_wide(sample: bytes) -> bool:
    """Return whether some bytes of a text are UTF-16 or UTF-32."""
    if b"\0" not in sample:
        return sample[:2] in _MARKS
    kinds = sample.translate(_KINDS)
    return any(mark in sample for mark in _MARKS) or any(run in kinds for run in _RUNS)


def with_plain_blanks(data: bytes) -> bytes:
    """Return a text with blanks that are one byte: messages are known by their words and the plain blanks between them."""
    if b"\xc2" in data or b"&" in data or b"\xe2" in data or b"\xe3" in data:
        return re.sub(_BLANKS, b" ", data)
    return data


def has_gbk(sample: bytes) -> bool:
    """Return whether a whole line in some bytes of a text is Chinese in GBK, as programs on Chinese Windows write it."""
    if sample.isascii() or "\ufffd" not in sample.decode("utf-8", "replace").strip("\ufffd"):
        return False
    return any(_from_gbk(line) is not None for line in sample.split(b"\n")[1:-1] or [sample])


def gbk_as_utf8(data: bytes) -> bytes:
    """Return a text with its lines in GBK as UTF-8, and all others as they are."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return b"\n".join(line if (chinese := _from_gbk(line)) is None else chinese for line in data.split(b"\n"))
    return data


def _from_gbk(line: bytes) -> bytes | None:
    """Return a line in GBK as UTF-8; None for all others, also for UTF-8 that is cut or damaged."""
    if line.isascii():
        return None
    text = line.decode("utf-8", "replace")
    holes = text.count("\ufffd")
    if not holes or 2 * holes <= sum(char > "\x7f" for char in text):
        return None
    try:
        chinese = line.decode("gb18030")
    except UnicodeDecodeError:
        return None
    return chinese.encode() if re.fullmatch(_CHINESE, chinese) else None


def _may_be_narrow(data: bytes) -> bool:
    """Return whether many plain bytes may stand in a row: a look at one place in 32 is as good as a search, and quick."""
    end = len(data) & -_STRIDE
    side_by_side = -1
    for lane in range(4):
        side_by_side &= int.from_bytes(data[lane:end:_STRIDE].translate(_PLAIN_OR_NOT), "big")
        if not side_by_side:
            return False
    places = [sign.start() * _STRIDE for sign in re.finditer(b"p", side_by_side.to_bytes(end // _STRIDE, "big"))]
    if len(places) > _FEW:
        return True  # Chinese, too, has bytes that are plain
    return any(_NARROW in data[max(0, at - _STRIDE) : at + _STRIDE + 4].translate(_PLAIN_OR_NOT) for at in places)


class _Converted:
    """A reader of a text that is no UTF-8 as UTF-8; `data` was read of it already."""

    def __init__(self, reader: Any, data: bytes = b"") -> None:
        self._reader = reader
        self._data = data
        self._held = memoryview(b"")
        self._has_ended = False

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer from its start and return how many bytes of it."""
        while not self._held and not self._has_ended:
            raw = bytearray(max(_RAW, len(buffer)))
            count = self._reader.readinto(memoryview(raw)) or 0
            self._data += memoryview(raw)[:count]
            self._has_ended = not count
            self._held = memoryview(self._convert())
        part = self._held[: len(buffer)]
        buffer[: len(part)] = part
        self._held = self._held[len(part) :]
        return len(part)

    def _convert(self) -> bytes:
        """Take from the data what can be read for sure, and return it as UTF-8."""
        raise NotImplementedError


class GbkAsUtf8(_Converted):
    """A reader of lines of which some are in GBK, as UTF-8."""

    def _convert(self) -> bytes:
        end = len(self._data) if self._has_ended or len(self._data) > _LONGEST_LINE else self._data.rfind(b"\n") + 1
        lines, self._data = self._data[:end], self._data[end:]
        return gbk_as_utf8(lines)


class Watched:
    """A stream that is looked at here and there while it passes; what is no UTF-8 comes as such from there on."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._is_utf8 = True

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer from its start and return how many bytes of it."""
        count = int(self._reader.readinto(buffer) or 0)
        if self._is_utf8:
            sample = bytes(buffer[max(0, count - SAMPLE) : count])
            change = AsUtf8 if is_wide(sample) else GbkAsUtf8 if has_gbk(sample) else None
            if change is not None:
                self._is_utf8 = False
                self._reader = change(self._reader, bytes(buffer[:count]))
                count = int(self._reader.readinto(buffer))
        return count


class AsUtf8(_Converted):
    """A reader of wide and narrow text as UTF-8."""

    def __init__(self, reader: Any, data: bytes = b"") -> None:
        super().__init__(reader, data)
        self._decoder: codecs.IncrementalDecoder | None = None
        self._width = 1

    def _convert(self) -> bytes:
        return b"".join(iter(self._piece, b""))

    def _piece(self) -> bytes:
        """Return some text up to where its width changes at the latest; empty where more must be read first."""
        if self._decoder is None:
            return self._narrow()
        end = len(self._data) if self._has_ended else max(0, len(self._data) - _KEPT)
        is_marked = False
        if _may_be_narrow(self._data):
            start = self._data.translate(_PLAIN_OR_NOT).find(_NARROW)
            is_marked = 0 <= start < end
            end = start if is_marked else end
        end += -end % self._width  # a character that begins before the narrow text belongs to the wide one
        part, self._data = self._data[:end], self._data[end:]
        text = self._decoder.decode(part, is_marked or self._has_ended).encode("utf-8", "replace")
        if is_marked:
            self._decoder = None
        return text or (self._narrow() if is_marked else b"")

    def _narrow(self) -> bytes:
        """Return the bytes before the next wide text."""
        marked = [at for mark in (b"\0", *_MARKS) if (at := self._data.find(mark)) >= 0]
        wide = re.compile(_WIDE).search(self._data, max(0, min(marked) - 1)) if marked else None
        if wide is not None:
            end = wide.start()
        else:
            end = len(self._data) if self._has_ended else max(0, len(self._data) - _KEPT)
        text, self._data = self._data[:end], self._data[end:]
        if wide is not None:
            self._turn(str(wide.lastgroup).replace("_", "-"))
        return text or (self._piece() if wide is not None else b"")

    def _turn(self, encoding: str) -> None:
        """Go on in a wide encoding, behind its mark."""
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._width = 4 if "32" in encoding else 2
        self._data = self._data.removeprefix("\ufeff".encode(encoding))
