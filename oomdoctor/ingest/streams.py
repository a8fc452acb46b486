"""Opening things: files, pipes and compressed files as plain readers of bytes.

Compression is told by the first bytes, not by the name. Everything is read in blocks into buffers of the caller, so
memory does not depend on the size of what is read. What cannot be read is `Unreadable` with the reason.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

_FIRST = 8
"""Bytes that tell what a source is."""
_FIRST_BYTES_S = 10.0
_NESTED = 3
_BOMB = 64 << 30
"""Decompressed bytes after which an archive is left alone: no training log is larger, and a bomb stops here."""


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
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        handle = os.open(path, flags)
    except OSError as why:
        return Unreadable(_reason(why), "check the path and its permissions")
    except ValueError:
        return Unreadable("not a path that the system can open")
    try:
        mode = os.fstat(handle)
        if stat.S_ISDIR(mode.st_mode):
            raise IsADirectoryError(errno.EISDIR, "a folder")
        if stat.S_ISFIFO(mode.st_mode) or stat.S_ISSOCK(mode.st_mode):
            return _open_pipe(handle)
        if not stat.S_ISREG(mode.st_mode):
            os.close(handle)
            return Unreadable("a device, not a log", "give the log file itself, or pipe it in with -")
        first = os.pread(handle, _FIRST, 0) if hasattr(os, "pread") else b""
        broken: list[str] = []
        return _wrap(_Descriptor(handle, broken), mode.st_size, handle, lambda: os.close(handle), first, broken)
    except OSError as why:
        os.close(handle)
        return Unreadable(_reason(why))


def open_bytes(data: bytes) -> Opened | Unreadable:
    """Bytes at hand as a source, decompressed like a file."""
    return _wrap(io.BytesIO(data), None, None, lambda: None, data[:_FIRST])


def wrap_bytes(data: bytes) -> Opened:
    """Bytes at hand as they are."""
    return Opened(io.BytesIO(data), len(data), None, lambda: None, [])


def _open_pipe(handle: int) -> Opened | Unreadable:
    """Open a named pipe: someone must write to it within a few seconds."""
    if not select.select([handle], [], [], _FIRST_BYTES_S)[0]:
        os.close(handle)
        return Unreadable("nobody writes to this pipe", "start the writer first, or use -")
    os.set_blocking(handle, True)
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
        first = reader.peek(_FIRST)
    for _ in range(_NESTED):
        name = _compression(first)
        if name is None:
            break
        plain = _decompressor(name, reader)
        if isinstance(plain, Unreadable):
            close()
            return plain
        reader = _Ahead(_Guarded(plain, name, broken))
        first = reader.peek(_FIRST)
        size = descriptor = None
    else:
        if _compression(first) is not None:
            broken.append("an archive in an archive in an archive: the inner ones were not opened")
            reader = _Ahead(_Nothing())
            first = b""
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        reader = _Utf16(reader)
        size = descriptor = None
    if first[:4] == b"PK\x03\x04":
        close()
        return Unreadable("a zip archive", "unpack it and give the folder")
    return Opened(reader, size, descriptor, close, broken)


_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bzip2"))


def _compression(first: bytes) -> str | None:
    return next((name for magic, name in _MAGIC if first.startswith(magic)), None)


def _decompressor(name: str, reader: Any) -> Any:
    if name == "gzip":
        try:
            from isal import igzip  # noqa: PLC0415 - three times as fast where it is installed

            return igzip.IGzipFile(fileobj=reader)  # type: ignore[no-untyped-call,unused-ignore]
        except ImportError:
            import gzip  # noqa: PLC0415 - only for such a file

            return gzip.GzipFile(fileobj=reader)
    if name == "xz":
        import lzma  # noqa: PLC0415 - only for such a file

        return lzma.LZMAFile(reader)
    if name == "bzip2":
        import bz2  # noqa: PLC0415 - only for such a file

        return bz2.BZ2File(reader)
    try:
        import zstandard  # noqa: PLC0415 - only for such a file, and it may not be installed
    except ImportError:
        return Unreadable("zstandard is not installed", 'pip install "oomdoctor[compression]"')
    return _Zstd(reader, zstandard)


class _Zstd:
    """Zstandard frames as a Reader; its own stream reader does not say when the rest of a frame is missing.

    Input goes in by the kilobyte: four bytes of it can be 128 KiB of output, so no more than 32 MiB are held at once.
    """

    def __init__(self, reader: Any, zstandard: Any) -> None:
        # A frame may ask for a window of its own size; 128 MiB is what `zstd` itself accepts without --long.
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=128 << 20)
        self._reader = reader
        self._frame: Any = None
        self._held = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        while not self._held:
            data = b""
            if self._frame is not None and self._frame.eof:
                data = self._frame.unused_data
                self._frame = None
            data = data or self._reader.read(1024)
            if not data:
                if self._frame is not None:
                    raise EOFError("the last frame is not complete")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._held = memoryview(self._frame.decompress(data))
        part = self._held[: len(buffer)]
        buffer[: len(part)] = part
        self._held = self._held[len(part) :]
        return len(part)


class _Guarded:
    """A decompressor whose damage and greed end the stream instead of the program."""

    def __init__(self, plain: Any, name: str, broken: list[str]) -> None:
        self._plain = plain
        self._name = name
        self._broken = broken
        self._given = 0
        self._ended = False

    def readinto(self, buffer: memoryview, /) -> int:
        if self._ended:
            return 0
        try:
            count = self._plain.readinto(buffer)
        except Exception as why:  # noqa: BLE001 - gzip, isal, zstandard, lzma and bz2 each raise errors of their own
            return self._end(f"the {self._name} data is damaged or cut off ({why or type(why).__name__})")
        self._given += count
        if self._given > _BOMB:
            return self._end(f"the {self._name} data unpacks to more than {_BOMB >> 30} GiB; the rest was not read")
        return int(count)

    def _end(self, why: str) -> int:
        self._broken.append(why)
        self._ended = True
        return 0


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


class _Utf16:
    """UTF-16 with a byte order mark, as UTF-8."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._held = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        while not self._held:
            raw = bytearray(max(1 << 16, len(buffer)))
            count = self._reader.readinto(memoryview(raw))
            text = self._decoder.decode(memoryview(raw)[:count], final=not count)
            self._held = memoryview(text.encode("utf-8", "replace"))
            if not count and not self._held:
                return 0
        part = self._held[: len(buffer)]
        buffer[: len(part)] = part
        self._held = self._held[len(part) :]
        return len(part)


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
