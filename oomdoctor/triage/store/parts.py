"""Files and rows in parts: which part a family of files belongs to, what is new in it, and its rows on the disk.

A part is a file of JSON lines, one for each family: a digest of its files and its rows. It is written under another name and renamed, so
that a run that is killed leaves whole parts and nothing else. A part whose listing has not changed is not read again.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder, encode

from oomdoctor.triage.log_file import PlacedFile, inputs_key
from oomdoctor.triage.placing import Placed
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.quiet_logs import QuietLog
from oomdoctor.triage.store.taken_cards import MARK, find_taken_cards

PARTS = 256
"""So many parts keep one of ten million files small enough to be held."""
_BUFFERED = 10_000
"""Files held before they are written to the lists of their parts."""


class ListedFile(Struct, frozen=True, array_like=True):
    """A line of the list of a part."""

    family: str
    placed: PlacedFile


class _ListLine(Struct, frozen=True, array_like=True):
    """The same, with its file as it is written: a part is large, and a family at a time is looked at."""

    family: str
    placed: Raw


class PartHead(Struct, frozen=True):
    """The first line of a part."""

    listing: str
    """A digest of the list that it was made of."""
    rules: str
    records: str = ""
    """Which records were at hand."""


class PartFamily(Struct, frozen=True, omit_defaults=True):
    """A line of a part: a family, what tells whether its files changed, and its rows as they were written."""

    family: str
    key: str
    rows: list[Raw]
    records: str = ""
    """A hash of what the records say of its jobs; empty where they say nothing."""
    quiet: list[QuietLog] = []
    """Its larger logs that can be read on from where they end."""


class StoredPart(Struct):
    """A part as it lies on the disk."""

    head: PartHead
    families: dict[str, PartFamily]


_LISTED = Decoder(_ListLine)
_PLACED = Decoder(PlacedFile)
_HEAD = Decoder(PartHead)
_FAMILIES = Decoder(PartFamily)
_ROWS = Decoder(JobRow)


class Parts:
    """The parts in one folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def write_lists(self, placed: Iterable[Placed], numbers: Iterable[int] | None = None) -> tuple[int, list[int]]:
        """Write the list of each part; return how many files there are, and the numbers of the parts that have some."""
        os.makedirs(self.folder, exist_ok=True)
        chosen = frozenset(range(PARTS) if numbers is None else numbers)
        # Other shards may be at work in this folder: what they left and have is theirs.
        for number, kind in itertools.product(chosen, ("files", "rows.new")):
            with suppress(FileNotFoundError):
                os.unlink(self._path(number, kind))
        held: dict[int, list[bytes]] = {}
        used: set[int] = set()
        count = 0
        for family, file in placed:
            number = zlib.crc32(family.encode("utf-8", "surrogateescape")) % PARTS
            if number not in chosen:
                continue
            held.setdefault(number, []).append(encode(ListedFile(family, file)) + b"\n")
            count += 1
            if count % _BUFFERED == 0:
                used |= self._flush(held)
        used |= self._flush(held)
        return count, sorted(used)

    def _flush(self, held: dict[int, list[bytes]]) -> set[int]:
        for number, lines in held.items():
            with open(self._path(number, "files"), "ab") as file:
                file.writelines(lines)
        written = set(held)
        held.clear()
        return written

    def drop_list(self, number: int) -> None:
        """Remove the list of a part that is finished."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(number, "files"))

    def unfinished(self) -> int:
        """Return how many parts have a list whose work nobody has finished."""
        try:
            return sum(name.endswith(".files") for name in os.listdir(self.folder))
        except FileNotFoundError:
            return 0

    def listed(self, number: int) -> tuple[str, list[bytes]]:
        """Return a digest of the list of a part, and its lines in a fixed order."""
        lines = sorted((_read(self._path(number, "files")) or b"").splitlines(keepends=True))
        digest = hashlib.blake2b(digest_size=16)
        for line in lines:
            digest.update(line)
        return digest.hexdigest(), lines

    def families(self, lines: Iterable[bytes]) -> dict[str, list[Raw]]:
        """Return the files of a list by family, as they are written."""
        out: dict[str, list[Raw]] = {}
        for listed in map(_LISTED.decode, lines):
            out.setdefault(listed.family, []).append(listed.placed)
        return out

    def head(self, number: int) -> PartHead | None:
        """Return the first line of a part; None where there is none that is whole."""
        try:
            with open(self._path(number, "rows"), "rb") as file:
                return _HEAD.decode(file.readline())
        except (OSError, DecodeError):
            return None

    def read(self, number: int) -> StoredPart | None:
        """Return a part; None where there is none."""
        data = _read(self._path(number, "rows"))
        return _decoded(data) if data else None

    def write(self, number: int, head: PartHead, families: Iterable[PartFamily]) -> None:
        """Write a part, whole or not at all."""
        path = self._path(number, "rows")
        with open(f"{path}.new", "wb") as file:
            file.write(encode(head) + b"\n")
            file.writelines(encode(family) + b"\n" for family in families)
            if os.path.exists(path):
                # Only here a power cut could cost rows whose logs are gone.
                file.flush()
                os.fsync(file.fileno())
        os.replace(f"{path}.new", path)

    def digest(self) -> str:
        """Return what is equal as long as no part was written anew."""
        with os.scandir(self.folder) as entries:
            told = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries if entry.name.endswith(".rows"))
        return hashlib.blake2b(repr(told).encode(), digest_size=8).hexdigest()

    def rows(self) -> Iterator[JobRow]:
        """Yield the rows of all parts, in the order of the parts."""
        for raw in self.raw_rows():
            yield _ROWS.decode(raw)

    def raw_rows(self) -> Iterator[bytes]:
        """Yield the rows of all parts as they were written, but for the group of a node whose cards others hold."""
        taken = find_taken_cards(row for row in self._written(MARK) if MARK in row)
        yield from map(taken.grouped, self._written())

    def _written(self, mark: bytes = b"") -> Iterator[bytes]:
        """Yield the rows as they were written, of those parts that hold a mark."""
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self.folder)):
                data = _read(os.path.join(self.folder, name)) if name.endswith(".rows") else None
                part = _decoded(data) if data and mark in data else None
                for family in part.families.values() if part is not None else ():
                    yield from map(bytes, family.rows)

    def _path(self, number: int, kind: str) -> str:
        return os.path.join(self.folder, f"{number:02x}.{kind}")


def placed_files(written: Iterable[Raw]) -> list[PlacedFile]:
    """Return the files of a family out of a list."""
    return [_PLACED.decode(file) for file in written]


def family_key(files: Iterable[PlacedFile]) -> str:
    """Return what is equal as long as no file of a family changed."""
    return inputs_key(placed.file for placed in files)


def _decoded(data: bytes) -> StoredPart | None:
    first, *lines = data.splitlines()
    try:
        return StoredPart(_HEAD.decode(first), {family.family: family for family in map(_FAMILIES.decode, lines)})
    except DecodeError:
        return None


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
