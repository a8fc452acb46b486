"""Files and rows in parts: which part a family of files belongs to, what is new in it, and its stored rows.

A part is a file of JSON lines, one for each family: a digest of its files and its rows. It is written under another name and renamed, so
that a run that is killed leaves whole parts and nothing else. A part whose listing has not changed is not read again. Each line is sealed:
of a damaged part the whole lines still count, and the rest is read again.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from oomdoctor.triage.log_file import PlacedFile, inputs_key
from oomdoctor.triage.placing import Placed
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.part_family import FamilyNames, PartFamily
from oomdoctor.triage.store.same_jobs import find_same_jobs
from oomdoctor.triage.store.sealed import seal, unseal
from oomdoctor.triage.store.taken_cards import MARK, find_taken_cards
from oomdoctor.triage.window import ALL, TimeWindow

FORMAT = 3
"""Incremented with every change that would cause stored rows to be misread: names of families, contents of a part."""
PARTS = 256
"""With this many parts, one of ten million files is still small enough to be held."""
UNLOGGED = PARTS
"""The number of the part for jobs known only from records (unlogged.py)."""
ALL_PARTS = (*range(PARTS), UNLOGGED)
_BUFFERED = 10_000
"""Files held before they are written to the lists of their parts."""


class ListedFile(Struct, frozen=True, array_like=True):
    """A line in a part's list."""

    family: str
    placed: PlacedFile


class _ListLine(Struct, frozen=True, array_like=True):
    """The same, with its file as written: a part is large, and only one family at a time is processed."""

    family: str
    placed: Raw


class Basis(Struct, frozen=True):
    """What a part was built from: a part with the same basis does not need to be checked again."""

    listing: str
    """A digest of the list it was built from."""
    rules: str
    records: str = ""
    """The records that were available."""
    format: int = FORMAT


class PartHead(Struct, frozen=True):
    """The first line of a part."""

    basis: Basis
    number: int
    families: int
    jobs: int


class StoredPart(Struct, frozen=True):
    """A part as stored on disk."""

    number: int
    head: PartHead | None
    """None if it is damaged or has another format."""
    lines: list[bytes]
    """Its families as written, without damaged ones."""
    is_whole: bool
    has_other_form: bool = False
    """Whether it has another format; then nothing in it is read, because it would be misread."""

    @property
    def families(self) -> dict[str, PartFamily]:
        """Return its families; those that belong to another part are ignored."""
        told = map(_FAMILIES.decode, self.lines)
        return {family.family: family for family in told if self.number in (UNLOGGED, _number_of(family.family))}


class _RowEnd(Struct):
    """The values in a row that show whether it is in a window."""

    ended: int | None = None


_FAMILY = b'{"family":'
"""The beginning of a family's line."""
_LISTED = Decoder(_ListLine)
_PLACED = Decoder(PlacedFile)
_HEAD = Decoder(PartHead)
_FAMILIES = Decoder(PartFamily)
_NAMES = Decoder(FamilyNames)
_ENDED = Decoder(_RowEnd)
_ROWS = Decoder(JobRow)


class Parts:
    """The parts in one folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def write_lists(self, placed: Iterable[Placed], numbers: Iterable[int] = range(PARTS)) -> tuple[int, list[int]]:
        """Write the list of each part; return the number of files, and the numbers of the parts that have some."""
        os.makedirs(self.folder, exist_ok=True)
        chosen = frozenset(numbers)
        # Other shards may be working in this folder: what they have left or created is theirs.
        for number, kind in itertools.product(chosen, ("files", "rows.new")):
            with suppress(FileNotFoundError):
                os.unlink(self._path(number, kind))
        held: dict[int, list[bytes]] = {}
        used: set[int] = set()
        count = 0
        for family, file in placed:
            number = _number_of(family)
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
        """Remove the list of a finished part."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(number, "files"))

    def unfinished(self) -> int:
        """Return how many parts have a list whose work is not finished."""
        try:
            return sum(name.endswith(".files") for name in os.listdir(self.folder))
        except FileNotFoundError:
            return 0

    def listed(self, number: int) -> tuple[str, list[bytes]]:
        """Return the digest of a part's list, and its lines in a fixed order; a file that is named twice counts once."""
        lines = sorted(set((_read(self._path(number, "files")) or b"").splitlines(keepends=True)))
        digest = hashlib.blake2b(digest_size=16)
        for line in lines:
            digest.update(line)
        return digest.hexdigest(), lines

    def families(self, lines: Iterable[bytes]) -> dict[str, list[Raw]]:
        """Return the files of a list by family, as written."""
        out: dict[str, list[Raw]] = {}
        for listed in map(_LISTED.decode, lines):
            out.setdefault(listed.family, []).append(listed.placed)
        return out

    def head(self, number: int) -> PartHead | None:
        """Return the first line of a part; None if there is no intact one."""
        try:
            with open(self._path(number, "rows"), "rb") as file:
                return _head(file.readline().rstrip(b"\n"), number)
        except OSError:
            return None

    def read(self, number: int) -> StoredPart | None:
        """Return a part; None if there is none."""
        path = self._path(number, "rows")
        if not os.path.lexists(path):
            return None
        return _stored(number, (_read(path) or b"").split(b"\n"))

    def write(self, number: int, basis: Basis, families: Sequence[PartFamily]) -> None:
        """Write a part, whole or not at all."""
        path = self._path(number, "rows")
        head = PartHead(basis, number, len(families), sum(len(family.rows) for family in families))
        with open(f"{path}.new", "wb") as file:
            file.writelines(seal(encode(line)) + b"\n" for line in (head, *families))
            if os.path.exists(path):
                # Only here could a power failure lose rows whose logs are gone.
                file.flush()
                os.fsync(file.fileno())
        os.replace(f"{path}.new", path)

    def mend(self, number: int) -> None:
        """Rewrite the intact entries of a part. A missing list has an empty digest, so the next run compares every family."""
        part = self.read(number)
        self.write(number, Basis("", ""), [] if part is None else sorted(part.families.values(), key=lambda family: family.family))

    def digest(self) -> str:
        """Return a value that stays the same as long as no part is rewritten."""
        with os.scandir(self.folder) as entries:
            parts = ((entry.name, entry.stat(follow_symlinks=False)) for entry in entries if entry.name.endswith(".rows"))
            told = sorted((name, status.st_size, status.st_mtime_ns) for name, status in parts)
        return hashlib.blake2b(repr(told).encode(), digest_size=8).hexdigest()

    def rows(self, window: TimeWindow = ALL) -> Iterator[JobRow]:
        """Yield the rows of all parts, in the order of the parts; with a window, only those of jobs that ended in it."""
        for raw in self.raw_rows(window):
            yield _ROWS.decode(raw)

    def raw_rows(self, window: TimeWindow = ALL) -> Iterator[bytes]:
        """Yield the rows of all parts, one per job, as written, except for the group of a node whose GPUs are used by others."""
        same = find_same_jobs(self._names(), self._families)
        taken = find_taken_cards(row for row in same.rows(self._families(MARK)) if MARK in row)
        for row in map(taken.grouped, same.rows(self._families())):
            if window.is_all or window.holds(ended_of(row)):
                yield row

    def _names(self) -> Iterator[FamilyNames]:
        """Yield the keys that identify the rows of all parts."""
        for part in self._parts():
            yield from map(_NAMES.decode, part.lines)

    def _families(self, mark: bytes = b"") -> Iterator[PartFamily]:
        """Yield the families that contain a mark, as written."""
        for part in self._parts():
            yield from replace(part, lines=[line for line in part.lines if mark in line]).families.values()

    def _parts(self) -> Iterator[StoredPart]:
        return filter(None, map(self.read, ALL_PARTS))

    def _path(self, number: int, kind: str) -> str:
        return os.path.join(self.folder, f"{number:02x}.{kind}")


def ended_of(row: bytes) -> int | None:
    """Return when the job of a stored row ended; None if unknown."""
    return _ENDED.decode(row).ended


def placed_files(written: Iterable[Raw]) -> list[PlacedFile]:
    """Return the files of a family in a list."""
    return [_PLACED.decode(file) for file in written]


def family_key(files: Iterable[PlacedFile]) -> str:
    """Return a value that stays the same as long as no file of a family changes."""
    return inputs_key(placed.file for placed in files)


def _number_of(family: str) -> int:
    """Return the part that a family belongs to."""
    return zlib.crc32(family.encode("utf-8", "surrogateescape")) % PARTS


def _stored(number: int, written: Sequence[bytes]) -> StoredPart:
    """Return a part from its lines, the last of which is empty."""
    *lines, end = written
    head = _head(lines[0], number) if lines else None
    is_unsealed = bool(lines) and lines[0].startswith(b"{")  # the first format
    if is_unsealed or (head is not None and head.basis.format != FORMAT):
        return StoredPart(number, None, [], is_whole=False, has_other_form=True)
    families = [line for line in map(unseal, lines) if line is not None and line.startswith(_FAMILY)]
    is_whole = head is not None and not end and len(families) == len(lines) - 1 == head.families
    return StoredPart(number, head, families, is_whole)


def _head(line: bytes, number: int) -> PartHead | None:
    data = unseal(line)
    try:
        head = None if data is None else _HEAD.decode(data)
    except DecodeError:
        return None
    return head if head is not None and head.number == number else None


def _read(path: str) -> bytes | None:
    if not os.path.isfile(path):  # a pipe would block
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
