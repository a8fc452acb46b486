"""Compressed logs as plain readers: as much of a damaged one as can be had, and one line on what could not be read.

An archive is a row of members. Damage ends a member and not the archive: the next one is looked for by its first bytes. What
stands behind the last member and is none is given as it is.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from msgspec import Struct

LARGEST = 8 << 30
"""Unpacked bytes after which an archive is left alone: a bomb ends here within half a minute, and a log of this size comes in parts."""
_BLOCK = 32 << 10
"""So many packed bytes are read at once."""
_FIRST_PIECE = 256
_LARGEST_PIECE = 128 << 10
"""An error takes the piece with it in which it shows, so the first pieces of an archive are small."""
_LARGEST_ZSTD_WINDOW = 128 << 20
"""What `zstd` itself accepts without --long."""
_MOST_DAMAGED = 1000
"""After so many members that cannot be read the rest is left alone."""
_GZIP_TRAILER = 8
_GZIP_HEADER = 10
_LONGEST_HEADER = 1 << 20


class Decompressor(Protocol):
    """Unpacks one member; the decompressors of the standard library have this shape."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes without more data."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What stands behind the end of the member."""
        ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Unpack; at most `max_length` bytes are given at once."""
        ...


class Compression(Struct, frozen=True):
    """One way of compressing: its name, its first bytes, and what a later member begins with."""

    name: str
    magic: bytes
    member: bytes
    """A pattern, longer than `magic` where that is too common to be looked for."""


class MissingDecompressor(Exception):
    """The package that unpacks it is not installed."""


_ALL = (
    Compression("gzip", b"\x1f\x8b", rb"\x1f\x8b\x08[\0-\x1f]"),
    Compression("zstd", b"\x28\xb5\x2f\xfd", rb"\x28\xb5\x2f\xfd"),
    Compression("xz", b"\xfd7zXZ\x00", rb"\xfd7zXZ\x00"),
    Compression("bzip2", b"BZh", rb"BZh[1-9]1AY&SY|BZh[1-9]\x17rE8P\x90"),
)
_OF_PYTHON = {"xz": ("lzma", "LZMADecompressor"), "bzip2": ("bz2", "BZ2Decompressor")}
"""Modules of the standard library that only such a file loads."""


def compression(first: bytes) -> Compression | None:
    """Return how a source is compressed, by its first bytes."""
    return next((known for known in _ALL if first.startswith(known.magic)), None)


def maker(name: str) -> Callable[[], Decompressor]:
    """Return what makes the decompressor of a member. Raise MissingDecompressor where its package is not installed."""
    if name == "gzip":
        inflate = _inflater()
        return lambda: _GzipMember(inflate)
    if name in _OF_PYTHON:
        module, decompressor = _OF_PYTHON[name]
        made: Callable[[], Decompressor] = getattr(import_module(module), decompressor)
        return made
    return _zstd_maker()


def _zstd_maker() -> Callable[[], Decompressor]:
    # A frame may ask for a window of its own size.
    with suppress(ImportError):
        zstd: Any = import_module("compression.zstd")  # of the standard library, from Python 3.14 on
        options = {zstd.DecompressionParameter.window_log_max: _LARGEST_ZSTD_WINDOW.bit_length() - 1}
        return lambda: _ZstdFrame(zstd.ZstdDecompressor(options=options))
    try:
        zstandard: Any = import_module("zstandard")
    except ImportError as why:
        raise MissingDecompressor from why
    return lambda: _ZstdFrame(zstandard.ZstdDecompressor(max_window_size=_LARGEST_ZSTD_WINDOW).decompressobj())


def _inflater() -> Any:
    try:
        from isal import isal_zlib  # noqa: PLC0415 - three times as fast where it is installed

        return isal_zlib
    except ImportError:
        return zlib


class Unpacked:
    """The members of an archive as one Reader. Damage and greed go into `broken` and end no program."""

    def __init__(self, reader: Any, packed: Compression, make: Callable[[], Decompressor], broken: list[str]) -> None:
        self._reader = reader
        self._packed = packed
        self._make = make
        self._broken = broken
        self._member: Decompressor | None = None
        self._data = self._chunk = b""
        self._held = memoryview(b"")
        self._given = self._damaged = 0
        self._is_first = True
        self._has_ended = self._is_lost = self._said = False

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer from its start and return how many bytes of it; 0 is the end."""
        filled = 0
        while filled < len(buffer) and (self._held or not self._has_ended):
            self._held = self._held or memoryview(self._next())
            part = self._held[: len(buffer) - filled]
            buffer[filled : filled + len(part)] = part
            self._held = self._held[len(part) :]
            self._given += len(part)
            filled += len(part)
        if self._given > LARGEST:
            self._held = memoryview(b"")
            self._end(f"the {self._packed.name} data unpacks to more than {LARGEST >> 30} GiB; the rest was not read")
            return 0
        return filled

    def _next(self) -> bytes:
        """Return some more plain bytes; empty where a step gave none."""
        if self._member is None:
            return self._between()
        try:
            if self._member.needs_input:
                self._data = self._data or self._reader.read(_BLOCK)
                if not self._data:
                    self._end(f"the {self._packed.name} data is damaged or truncated: its end is missing")
                    return b""
                self._chunk, self._data = self._data, b""
                data = self._chunk
            else:
                data = b""
            plain = self._member.decompress(data, min(_LARGEST_PIECE, max(_FIRST_PIECE, self._given >> 3)))
        except Exception as why:  # noqa: BLE001 - zlib, isal, zstandard, lzma and bz2 each raise errors of their own
            self._say(f"the {self._packed.name} data is damaged ({str(why) or type(why).__name__}); not all of it could be read")
            # What went in last is looked through for the next member, but not from the first byte of this one on.
            self._data = self._chunk[1:]
            self._member, self._is_lost = None, True
            self._damaged += 1
            if self._damaged >= _MOST_DAMAGED:
                self._has_ended = True
            return b""
        if self._member.eof:
            self._data, self._member = self._member.unused_data, None
        return plain

    def _between(self) -> bytes:
        """Return what stands between members: after damage it is lost, behind the last member it is a text of its own."""
        if len(self._data) < _BLOCK // 2:
            more = self._reader.read(_BLOCK)
            self._data += more
        else:
            more = b"."
        if not self._data:
            self._has_ended = True
            return b""
        member = re.search(self._packed.member, self._data)
        at = 0 if self._is_first else member.start() if member is not None else len(self._data)
        if not at:
            self._member, self._is_first, self._is_lost = self._make(), False, False
            return b""
        if member is None and more:
            at = max(0, at - 16)  # the first bytes of a member may stand here, and the rest of them in what is read next
        between, self._data = self._data[:at], self._data[at:]
        if self._is_lost or not between.strip(b"\0"):
            return b""
        self._say(f"the {self._packed.name} data is followed by something else; it was read as text")
        return between

    def _say(self, why: str) -> None:
        if not self._said:
            self._broken.append(why)
        self._said = True

    def _end(self, why: str) -> None:
        self._say(why)
        self._has_ended = True


class _GzipMember:
    """A member of gzip; its checksum is looked at by ourselves, so that a wrong one costs nothing of the text."""

    def __init__(self, inflate: Any) -> None:
        self._crc32 = inflate.crc32
        self._inflated = inflate.decompressobj(-15)
        self._head: bytes | None = b""
        self._trailer = b""
        self._is_full = False
        self._checksum = 0
        self.eof = False
        self.unused_data = b""

    @property
    def needs_input(self) -> bool:
        return not self._is_full

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._head is not None:
            self._head += data
            end = _gzip_header(self._head)
            if end is None:
                return b""
            data, self._head = self._head[end:], None
        if self._inflated.eof:
            self._trailer += data
            self._check()
            return b""
        plain: bytes = self._inflated.decompress(self._inflated.unconsumed_tail + data, max_length)
        self._checksum = self._crc32(plain, self._checksum)
        self._is_full = bool(self._inflated.unconsumed_tail) or len(plain) == max_length or self._inflated.eof
        if self._inflated.eof:
            self._trailer = self._inflated.unused_data
        return plain

    def _check(self) -> None:
        self._is_full = False
        if len(self._trailer) < _GZIP_TRAILER:
            return
        self.eof, self.unused_data = True, self._trailer[_GZIP_TRAILER:]
        if int.from_bytes(self._trailer[:4], "little") != self._checksum:
            raise ValueError("its checksum is wrong")


def _gzip_header(head: bytes) -> int | None:
    """Return where the header of a member ends (RFC 1952); None where more of it is needed. Raise ValueError where it is none."""
    if len(head) < _GZIP_HEADER:
        return None
    flags, at = head[3], _GZIP_HEADER
    if head[2] != 8 or flags & 0xE0:
        raise ValueError("its first bytes are not a header")
    if flags & 4:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            at = head.find(b"\0", at) + 1
            if not at:
                if len(head) > _LONGEST_HEADER:
                    raise ValueError("its first bytes are not a header")
                return None
    at += 2 if flags & 2 else 0
    return at if at <= len(head) else None


class _ZstdFrame:
    """A frame of Zstandard. Four bytes of it can be 128 KiB of text, so it takes no more than a kilobyte at once.

    A checksum stands in the last bytes of a frame: they go in by themselves, so that a wrong one does not cost the text before it.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data) + self._waiting

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:  # noqa: ARG002 - bounded by what goes in
        self._waiting += data
        count = min(1024, max(4, len(self._waiting) - 4))
        part, self._waiting = self._waiting[:count], self._waiting[count:]
        return bytes(self._frame.decompress(part))
