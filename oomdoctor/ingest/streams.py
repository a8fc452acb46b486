"""Opening things: files, pipes and compressed files as plain readers of bytes.

Compression is told by the first bytes, not by the name. Everything is read in blocks into buffers of the caller, so
memory does not depend on the size of what is read. What cannot be read is `Unreadable` with the reason.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.ingest.compression import MissingDecompressor, Unpacked, compression, maker
from oomdoctor.ingest.encodings import SAMPLE, AsUtf8, GbkAsUtf8, Watched, gbk_as_utf8, has_gbk, is_wide, with_plain_blanks
from oomdoctor.opening import open_descriptor, wait_for_writer

_SHORT = 64 << 10
"""Of a source up to this size, and of the beginning of a stream, every byte is looked at before it is read."""
_LOOKS = 4
"""In so many places a larger file is looked at for text in UTF-16."""
_LARGEST = 1 << 40
_NESTED = 3


class Reader(Protocol):
    """Something that fills a buffer and says how much of it; 0 is the end."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer from its start and return how many bytes of it."""
        ...


class Opened(Struct, frozen=True):
    """A readable source."""

    reader: Reader
    size: int | None
    """Bytes in it, None where only reading to the end tells."""
    descriptor: int | None
    """For `os.pread` at any place; None where the source can only be read once."""
    close: Callable[[], None]
    broken: list[str]
    """Filled while reading: why the source ended before its end."""


class Unreadable(Struct, frozen=True):
    """A source that cannot be read, why, and what would help."""

    reason: str
    how: str | None = None


def open_path(path: str) -> Opened | Unreadable:
    """Open a file or named pipe for reading, decompressed; `-` is standard input."""
    if path == "-":
        return _wrap(_Descriptor(0, []), None, None, lambda: None, first=b"")
    try:
        handle = open_descriptor(path)
    except OSError as why:
        return Unreadable(_reason(why), "check the path and its permissions")
    except ValueError:
        return Unreadable("not a path the system can open")
    try:
        mode = os.fstat(handle)
        if stat.S_ISDIR(mode.st_mode):
            raise IsADirectoryError(errno.EISDIR, "a folder")
        if stat.S_ISFIFO(mode.st_mode) or stat.S_ISSOCK(mode.st_mode):
            return _open_pipe(handle)
        if not stat.S_ISREG(mode.st_mode):
            os.close(handle)
            return Unreadable("a device, not a log", "give the log file itself, or pipe it in with -")
        if mode.st_size > _LARGEST:
            os.close(handle)
            return Unreadable(f"larger than {_LARGEST >> 40} TiB: not a log, or an endless file", "give the relevant part of it")
        broken: list[str] = []
        first = os.pread(handle, _SHORT if mode.st_size <= _SHORT else SAMPLE, 0) if hasattr(os, "pread") else b""
        return _wrap(_Descriptor(handle, broken), mode.st_size, handle, lambda: os.close(handle), first, broken)
    except OSError as why:
        os.close(handle)
        return Unreadable(_reason(why))


def read_beginning(path: str, size: int) -> bytes:
    """Return the first bytes of a file, decompressed and in UTF-8, at most `size` of them; none where it cannot be read."""
    opened = open_path(path)
    if isinstance(opened, Unreadable):
        return b""
    buffer = bytearray(size)
    try:
        return bytes(buffer[: opened.reader.readinto(memoryview(buffer)) or 0])
    finally:
        opened.close()


def open_bytes(data: bytes) -> Opened | Unreadable:
    """Bytes at hand as a source, decompressed like a file."""
    return _wrap(io.BytesIO(data), None, None, lambda: None, data[:_SHORT])


def wrap_bytes(data: bytes) -> Opened:
    """Bytes at hand as they are."""
    return Opened(io.BytesIO(data), len(data), None, lambda: None, [])


def _open_pipe(handle: int) -> Opened | Unreadable:
    """Open a named pipe: someone must write to it within a few seconds."""
    try:
        wait_for_writer(handle)
    except OSError as why:
        os.close(handle)
        return Unreadable(_reason(why), "start the writer first, or use -")
    return _wrap(_Descriptor(handle, []), None, None, lambda: os.close(handle), first=b"")


class _Descriptor:
    """A file descriptor as a Reader, with the errors of the system as an early end."""

    def __init__(self, handle: int, broken: list[str]) -> None:
        self._handle = handle
        self._broken = broken

    def readinto(self, buffer: memoryview, /) -> int:
        try:
            return os.readv(self._handle, [buffer]) if hasattr(os, "readv") else _copy(os.read(self._handle, len(buffer)), buffer)
        except OSError as why:
            self._broken.append(_reason(why))
            return 0

    def read(self, size: int = -1) -> bytes:
        """For the decompressors, which want to pull."""
        try:
            return os.read(self._handle, size if size >= 0 else 1 << 20)
        except OSError as why:
            self._broken.append(_reason(why))
            return b""


def _copy(data: bytes, buffer: memoryview) -> int:
    buffer[: len(data)] = data
    return len(data)


def _wrap(
    reader: Any,
    size: int | None,
    descriptor: int | None,
    close: Callable[[], None],
    first: bytes,
    broken: list[str] | None = None,
) -> Opened | Unreadable:
    """Return the reader with its compression and its encoding taken off."""
    broken = broken if broken is not None else getattr(reader, "_broken", [])
    if not first:
        reader = _Ahead(reader)
        first = reader.peek(_SHORT)
    for _ in range(_NESTED):
        packed = compression(first)
        if packed is None:
            break
        try:
            make = maker(packed.name)
        except MissingDecompressor:
            close()
            return Unreadable("zstandard is not installed", 'pip install "oomdoctor[compression]"')
        reader = _Ahead(Unpacked(reader, packed, make, broken))
        first = reader.peek(_SHORT)
        size = descriptor = None
    else:
        if compression(first) is not None:
            broken.append("archives nested three levels deep: the inner ones were not opened")
            reader = _Ahead(_Nothing())
            first = b""
    if first[:4] == b"PK\x03\x04":
        close()
        return Unreadable("a zip archive", "unpack it and give the folder")
    return _as_plain_utf8(Opened(reader, size, descriptor, close, broken), first)


def _as_plain_utf8(opened: Opened, first: bytes) -> Opened:
    """Return the source with wide text as UTF-8 and, where it is short, with blanks of one byte."""
    samples = _samples(opened, first)
    if any(map(is_wide, samples)):
        return replace(opened, reader=AsUtf8(opened.reader), size=None, descriptor=None)
    if len(first) < _SHORT and (opened.size is None or opened.size == len(first)):
        plain = with_plain_blanks(gbk_as_utf8(first))
        if plain is first and opened.size is not None:
            return opened
        return replace(opened, reader=io.BytesIO(plain), size=len(plain), descriptor=None)
    if any(map(has_gbk, samples)):
        return replace(opened, reader=GbkAsUtf8(opened.reader), size=None, descriptor=None)
    return opened if opened.size is not None else replace(opened, reader=Watched(opened.reader))


def _samples(opened: Opened, first: bytes) -> list[bytes]:
    """Return the beginning of a source, and of a larger file some bytes further on and at its end."""
    if opened.descriptor is None or not opened.size or opened.size <= len(first):
        return [first]
    end = max(0, opened.size - SAMPLE)
    return [first, *(os.pread(opened.descriptor, SAMPLE, end * look // (_LOOKS - 1)) for look in range(1, _LOOKS))]


class _Nothing:
    def readinto(self, buffer: memoryview, /) -> int:  # noqa: ARG002 - the interface of a reader
        return 0


class _Ahead:
    """A reader that can show its first bytes before giving them."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._held = b""

    def peek(self, count: int) -> bytes:
        while len(self._held) < count:
            buffer = bytearray(count - len(self._held))
            got = self._reader.readinto(memoryview(buffer))
            if not got:
                break
            self._held += bytes(buffer[:got])
        return self._held

    def readinto(self, buffer: memoryview, /) -> int:
        if self._held:
            part = self._held[: len(buffer)]
            self._held = self._held[len(part) :]
            return _copy(part, buffer)
        return int(self._reader.readinto(buffer) or 0)

    def read(self, size: int = -1) -> bytes:
        """For a decompressor that reads from this one."""
        buffer = bytearray(size if 0 <= size <= 1 << 20 else 1 << 20)
        return bytes(buffer[: self.readinto(memoryview(buffer))])


def _reason(why: OSError) -> str:
    known = {
        errno.ENOENT: "no such file",
        errno.EACCES: "permission denied",
        errno.ELOOP: "a loop of symbolic links",
        errno.EISDIR: "a folder",
    }
    return known.get(why.errno or 0) or (why.strerror or str(why)).lower()


def stdin_is_terminal() -> bool:
    """Return whether a person is expected to type the input."""
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False
