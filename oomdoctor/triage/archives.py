"""The members of an archive of logs: names and bytes, within bounds."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from oomdoctor.ingest.streams import Reader, Unreadable, open_path
from oomdoctor.triage.log_file import MEMBER, LogFile
from oomdoctor.triage.texts import LARGE, text_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MOST_MEMBERS = 200_000
_MOST_BYTES = 2 << 30
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError)
"""What the readers raise at bytes that are no such archive, or at a member that needs a password."""


def archive_members(file: LogFile) -> Iterator[tuple[LogFile, bytes]]:
    """Yield each file in an archive with its text; where it breaks off, one entry that says why."""
    left = _MOST_BYTES
    try:
        for number, (name, size, data) in enumerate(_members(file.path)):
            if number >= _MOST_MEMBERS or left <= 0:
                yield replace(file, path=f"{file.path}{MEMBER}", problem="more than is read of one archive"), b""
                return
            left -= len(data)
            path = f"{file.path}{MEMBER}{name}"
            text = text_of(data, path)
            problem = "larger than is read of a member" if size > LARGE or text.data is None else text.problem
            yield LogFile(path, size, file.modified, file.owner, problem), text.data or b""
    except _DAMAGED as why:
        yield replace(file, path=f"{file.path}{MEMBER}", problem=f"a damaged archive: {str(why)[:100].lower()}"), b""


def _members(path: str) -> Iterator[tuple[str, int, bytes]]:
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as member:
                        yield entry.filename, entry.file_size, member.read(LARGE)
        return
    opened = open_path(path)
    if isinstance(opened, Unreadable):
        raise ValueError(opened.reason)
    try:
        with tarfile.open(fileobj=io.BufferedReader(_Pull(opened.reader)), mode="r|") as tar:
            for packed in tar:
                if packed.isfile() and (extracted := tar.extractfile(packed)) is not None:
                    yield packed.name, packed.size, extracted.read(LARGE)
    finally:
        opened.close()


class _Pull(io.RawIOBase):
    """A reader of ours as a file of the standard library."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer from its start."""
        return self._reader.readinto(memoryview(buffer)) or 0
