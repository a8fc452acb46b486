"""The contents of a fleet's file: its unpacked and unwrapped text if it is small; a large file is read in place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from oomdoctor.ingest.compression import compression
from oomdoctor.ingest.encodings import NOT_TEXT, is_binary
from oomdoctor.ingest.streams import Opened, Unreadable, open_bytes, open_path, read_beginning
from oomdoctor.opening import open_descriptor
from oomdoctor.triage.elsewhere.downloads import where
from oomdoctor.triage.exports import error_file_text, join_pieces
from oomdoctor.triage.log_file import LogFile

LARGE = 8 << 20
"""Up to this size, a text is held whole."""
_ERROR_FILE = "error.json"
_START = 64 << 10
_BLOCK = 256 << 10
_LONGEST_LINE = 4 << 20


class FileText(Struct, frozen=True):
    """The result of reading a file."""

    data: bytes | None = b""
    """None if the text is too large to be held."""
    problem: str | None = None
    """Why it could not be read, or not to the end."""
    as_it_lies: bool = False
    """Whether no unpacking or unwrapping was needed."""


def read_text(file: LogFile) -> FileText:
    """Return the text of a file, unpacked and unwrapped."""
    if file.problem is not None:
        return FileText(b"", file.problem)
    if file.size > LARGE:
        return FileText(None, as_it_lies=_is_plain(file.path))
    try:
        handle = open_descriptor(where(file.path))
    except (OSError, ValueError) as why:
        return FileText(b"", str(getattr(why, "strerror", None) or why).lower())
    try:
        data = os.read(handle, file.size)
    except OSError as why:
        return FileText(b"", (why.strerror or str(why)).lower())
    finally:
        os.close(handle)
    return text_of(data, file.path)


def text_of(data: bytes, path: str) -> FileText:
    """Return bytes as text: unpacked, in UTF-8, and with a runtime's entries joined."""
    whole, problem = data, None
    if len(data) > LARGE:
        return FileText(None)
    if compression(data[:8]) is not None or b"\0" in data:
        unpacked = _unpacked(open_bytes(data))
        if unpacked.data is None:
            return unpacked
        data, problem = unpacked.data, unpacked.problem
    if path.endswith(_ERROR_FILE):
        data = error_file_text(data) or data
    if is_binary(data[:_START]):
        return FileText(data, NOT_TEXT)
    joined = join_pieces(data)
    return FileText(joined, problem, as_it_lies=joined is whole and not path.endswith(_ERROR_FILE))


def _is_plain(path: str) -> bool:
    """Return whether a large file is read in place."""
    opened = open_path(where(path))
    if isinstance(opened, Unreadable):
        return False
    opened.close()
    return opened.descriptor is not None


def _unpacked(opened: Opened | Unreadable) -> FileText:
    if isinstance(opened, Unreadable):
        return FileText(b"", opened.reason)
    out = bytearray()
    for block in _blocks(opened):
        out += block
        if len(out) > LARGE:
            return FileText(None)
    return FileText(bytes(out), opened.broken[0] if opened.broken else None)


def read_start(path: str) -> bytes:
    """Return the first bytes of a file, unpacked; nothing if it cannot be read."""
    return read_beginning(where(path), _START)


def read_first(file: LogFile) -> bytes:
    """Return the first raw bytes of a file; nothing if it cannot be read."""
    try:
        with open(where(file.path), "rb") as log:
            return log.read(_START)
    except OSError:
        return b""


def read_end(file: LogFile) -> bytes:
    """Return the last raw bytes of a file; nothing if it cannot be read."""
    try:
        with open(where(file.path), "rb") as log:
            log.seek(max(0, file.size - _START))
            return log.read(_START)
    except OSError:
        return b""


def lines_of(path: str) -> Iterator[bytes]:
    """Yield the lines of a file of any size; a line of many MiB comes in pieces."""
    opened = open_path(where(path))
    if isinstance(opened, Unreadable):
        return
    rest = b""
    with suppress(GeneratorExit):
        for block in _blocks(opened):
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
            if len(rest) > _LONGEST_LINE:
                yield rest
                rest = b""
        if rest:
            yield rest
    opened.close()


def _blocks(opened: Opened) -> Iterator[bytes]:
    buffer = bytearray(_BLOCK)
    view = memoryview(buffer)
    while got := opened.reader.readinto(view):
        yield bytes(view[:got])
