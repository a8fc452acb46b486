"""Compressed files and zips as plain bytes, bounded: what unpacks to far more than a snapshot does is left alone."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from oomdoctor.ingest.compression import MissingDecompressor, Unpacked, compression, maker
from oomdoctor.snapshots.opcodes import NotReadable, UnpacksTooFar
from oomdoctor.snapshots.pickled.window import ByteSource

FIRST = 1 << 16
"""So many bytes tell what a file is."""
_PIECE = 1 << 20
_MOST_TIMES = 100
"""Snapshots unpack to some 5 to 30 times their size; those of a loop that repeats itself to more."""
_LEAST_LIMIT = 32 << 20
_NESTED = 3


class Ahead:
    """A source whose first bytes can be looked at before they are read."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self.first = _read(source, FIRST)
        self._rest: bytes | None = self.first

    def read(self, size: int = -1, /) -> bytes:
        """Return some bytes, at most `size`."""
        held, self._rest = self._rest, None
        if not held:
            return self._source.read(size)
        if 0 <= size < len(held):
            held, self._rest = held[:size], held[size:]
        return held


class _Unpacking:
    """The members of an archive as a source."""

    def __init__(self, unpacked: Unpacked) -> None:
        self._unpacked = unpacked

    def read(self, size: int = -1, /) -> bytes:
        buffer = bytearray(_PIECE if size < 0 else size)
        return bytes(memoryview(buffer)[: self._unpacked.readinto(memoryview(buffer))])


def plain_source(file: Any, damage: list[str]) -> tuple[Ahead, bool]:
    """Return a source of plain bytes, and whether anything was unpacked. What is wrong with an archive goes into `damage`.

    Raise NotReadable where the package that unpacks it is missing.
    """
    ahead, is_packed = Ahead(file), False
    for _ in range(_NESTED):
        packed = compression(ahead.first)
        if packed is None:
            break
        try:
            make = maker(packed.name)
        except MissingDecompressor:
            raise NotReadable("it is compressed with zstandard, which is not installed (pip install zstandard)") from None
        ahead, is_packed = Ahead(_Unpacking(Unpacked(ahead, packed, make, damage))), True
    return ahead, is_packed


def read_all(source: ByteSource, file: BinaryIO) -> bytes:
    """Return all bytes of a source. Raise UnpacksTooFar where they are far more than its file can hold."""
    return _read(Bounded(source, file), None)


def most_unpacked(file_size: int) -> int:
    """Return the bytes that a compressed file may unpack to."""
    return max(_LEAST_LIMIT, _MOST_TIMES * file_size)


class Bounded:
    """A source that ends with UnpacksTooFar where it gives far more than what was read of its file can hold.

    What was read so far counts, and not the whole file: so a large bomb ends as early as a small one.
    """

    def __init__(self, source: ByteSource, file: BinaryIO) -> None:
        self._source, self._file = source, file
        self._given = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return at most so many bytes."""
        piece = self._source.read(size)
        self._given += len(piece)
        if self._given > (most := most_unpacked(self._file.tell())):
            raise UnpacksTooFar(f"it unpacks to more than {most >> 20} MiB, which no snapshot of its size does")
        return piece


def _read(source: ByteSource, most: int | None) -> bytes:
    out = io.BytesIO()
    while most is None or out.tell() < most:
        piece = source.read(_PIECE if most is None else min(_PIECE, most - out.tell()))
        if not piece:
            break
        out.write(piece)
    return out.getvalue()


@contextmanager
def pickle_in_zip(file: BinaryIO) -> Iterator[ByteSource]:
    """Give the pickle in a file of torch.save as a source. Raise NotReadable where there is none, or it is damaged."""
    try:
        with zipfile.ZipFile(file) as archive:
            inside = next((info for info in archive.infolist() if info.filename.endswith("data.pkl")), None)
            if inside is None:
                raise NotReadable("it is a zip without a data.pkl: torch.save did not write it")
            with archive.open(inside) as member:
                yield Bounded(member, file)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        raise NotReadable(f"it is a damaged or truncated zip: {error}") from None
