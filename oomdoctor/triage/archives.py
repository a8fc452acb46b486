"""The members of a log archive, in the groups in which they are read: names and bytes, within limits."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

from msgspec.structs import replace

from oomdoctor.ingest.streams import Reader, Unreadable, open_path
from oomdoctor.opening import open_file
from oomdoctor.triage.elsewhere.downloads import where
from oomdoctor.triage.listing import ListedFolder
from oomdoctor.triage.log_file import MEMBER, LogFile, PlacedFile
from oomdoctor.triage.placing import Layouts
from oomdoctor.triage.texts import LARGE, text_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MOST_MEMBERS = 200_000
_HELD = 64 << 20
"""The number of bytes of member texts held at once."""
_MOST_PASSES = 64
"""How many times an archive may be read again for content beyond that."""
_MOST_UNPACKED = 4 << 30
_BLOCK = 1 << 20
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError)
"""Exceptions raised for bytes that are not a valid archive, or for a member that needs a password."""
_NOT_WHOLE = "its middle was not read: it exceeds the limit for an archive member"
_TOO_MUCH = "beyond the limit for one archive"

Family = tuple[list[PlacedFile], dict[str, bytes]]
"""Members that are read together, and the text of each by its path."""
_IsRead = Callable[[str, int], bool]
"""Whether the text of a member with this path and size is read."""


def archive_families(file: LogFile, layouts: Layouts) -> Iterator[Family]:
    """Yield the families that the layouts form from an archive's members; if the archive is truncated, one member says why.

    An archive that holds more than fits is read again for the rest.
    """
    texts: dict[str, bytes] = {}
    left = _HELD
    members: list[LogFile] = []

    def fits(_: str, size: int) -> bool:
        return size <= left

    for member, data in _members(file, fits):
        members.append(member)
        if data is not None:
            texts[member.path] = data
            left -= len(data)
    waiting: list[list[PlacedFile]] = []
    for family in _families(members, layouts):
        if all(placed.path in texts or placed.file.problem is not None for placed in family):
            yield family, {placed.path: texts.pop(placed.path, b"") for placed in family}
        else:
            waiting.append(family)
    texts.clear()
    for number, chosen in enumerate(_chunks(waiting)):
        chosen_paths = {placed.path for family in chosen for placed in family}
        for member, data in _members(file, lambda path, _: path in chosen_paths) if number < _MOST_PASSES else ():  # noqa: B023 - used at once
            texts[member.path] = data or b""
        for family in chosen:
            of_family = {placed.path: texts.pop(placed.path, b"") for placed in family}
            yield [_told(placed, number < _MOST_PASSES) for placed in family], of_family


def _families(members: Sequence[LogFile], layouts: Layouts) -> Iterable[list[PlacedFile]]:
    by_folder: dict[str, list[LogFile]] = {}
    for member in members:
        by_folder.setdefault(os.path.dirname(member.path), []).append(member)
    placed: dict[str, list[PlacedFile]] = {}
    for path, files in by_folder.items():
        inner = {rest.split("/", 1)[0] for other in by_folder if other.startswith(f"{path}/") and (rest := other[len(path) + 1 :])}
        for key, placed_member in layouts.place(ListedFolder(path, tuple(sorted(inner)), tuple(files))):
            placed.setdefault(key, []).append(placed_member)
    return placed.values()


def _chunks(families: Iterable[list[PlacedFile]]) -> Iterator[list[list[PlacedFile]]]:
    """Yield families in batches whose texts fit."""
    chosen: list[list[PlacedFile]] = []
    held = 0
    for family in families:
        size = sum(min(placed.file.size, LARGE) for placed in family)
        if chosen and held + size > _HELD:
            yield chosen
            chosen, held = [], 0
        chosen.append(family)
        held += size
    if chosen:
        yield chosen


def _told(placed: PlacedFile, is_read: bool) -> PlacedFile:
    return placed if is_read else replace(placed, file=replace(placed.file, problem=_TOO_MUCH))


def _members(file: LogFile, is_read: _IsRead) -> Iterator[tuple[LogFile, bytes | None]]:
    """Yield each file in an archive with its text, None if that is not read; if the archive is truncated, one entry says why."""
    unpacked = 0
    try:
        for number, (name, size, member) in enumerate(_entries(where(file.path))):
            if number >= _MOST_MEMBERS or unpacked > _MOST_UNPACKED:
                yield replace(file, path=f"{file.path}{MEMBER}", problem=_TOO_MUCH), b""
                return
            path = f"{file.path}{MEMBER}{_printable(name)}"
            if not is_read(path, min(size, LARGE)):
                yield LogFile(path, size, file.modified, file.owner), None
                continue
            data, length = _held(member)
            unpacked += length
            text = text_of(data, path)
            problem = _NOT_WHOLE if length > len(data) or text.data is None else text.problem
            yield LogFile(path, size, file.modified, file.owner, problem), text.data or b""
    except _DAMAGED as why:
        yield replace(file, path=f"{file.path}{MEMBER}", problem=f"a damaged archive: {str(why)[:100].lower()}"), b""


def _held(member: IO[bytes]) -> tuple[bytes, int]:
    """Return the text of a member (the beginning and end of a large one) and its length."""
    blocks: deque[bytes] = deque()
    first, length = member.read(_BLOCK), 0
    while block := member.read(_BLOCK):
        blocks.append(block)
        length += len(block)
        if len(blocks) > LARGE // _BLOCK - 1:
            blocks.popleft()
        if length > _MOST_UNPACKED:
            break
    return b"".join([first, *blocks])[:LARGE], len(first) + length


def _entries(path: str) -> Iterator[tuple[str, int, IO[bytes]]]:
    if path.endswith(".zip"):
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as member:
                        yield entry.filename, entry.file_size, member
        return
    opened = open_path(path)
    if isinstance(opened, Unreadable):
        raise ValueError(opened.reason)
    try:
        with tarfile.open(fileobj=io.BufferedReader(_Pull(opened.reader)), mode="r|") as tar:
            for packed in tar:
                if packed.isfile() and (extracted := tar.extractfile(packed)) is not None:
                    yield packed.name, packed.size, extracted
    finally:
        opened.close()


def _printable(name: str) -> str:
    """Return a member's name in printable form: tar keeps the raw bytes of a name that is not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class _Pull(io.RawIOBase):
    """Adapts one of our readers to the standard library's file interface."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def readable(self) -> bool:
        """Return that it is readable."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer from the start."""
        return self._reader.readinto(memoryview(buffer)) or 0
