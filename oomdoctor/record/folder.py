"""Write the evidence folder: whole files or none, bounded, and never an error that would reach the run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from msgspec.json import encode
from msgspec.json import format as indented

from oomdoctor.record.evidence import ATTEMPTS, CHANGED, ENVIRONMENT, LOG, SAMPLES, EvidenceGap
from oomdoctor.record.evidence_place import MOST_BYTES, RANKS, EvidencePlace, create, make_place, put, remove_if_empty, remove_tree

MOST_LINES_BYTES = 8 << 20
"""Of samples."""
_ROOM, _ROOM_BYTES = ".room", 64 << 10
"""The file that holds the place of the last record, and more than that takes."""
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class EvidenceFolder:
    """The folder of a run. What cannot be written becomes a gap, once for each reason."""

    def __init__(self, place: EvidencePlace, most: int = MOST_BYTES) -> None:
        self.path = place.path
        self.failed = place.failed
        self.gaps = [EvidenceGap(what=f"evidence folder {path}", why=why, how="oomdoctor run --out DIR") for path, why in place.failed]
        self._is_new = place.is_new
        self.moved_from: str | None = None
        """Where it was until there was no room left."""
        self._most = most
        self._left = most

    def write(self, name: str, data: bytes) -> bool:
        """Write a file, whole or not at all; return whether it is there."""
        if self.path is None:
            return False
        if len(data) > self._left:
            self._gap(name, f"the evidence would be larger than {self._most >> 20} MiB")
            return False
        target = os.path.join(self.path, name)
        try:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            put(target, data)
        except OSError as error:
            self._gap(name, error.strerror or str(error))
            return False
        self._left -= len(data)
        return True

    def write_json(self, name: str, value: object) -> bool:
        """Write a structure as JSON. A file that is written again does not count twice."""
        data = indented(encode(value), indent=1) + b"\n"
        self._left += self._size(name)
        return self.write(name, data)

    def keep_room(self) -> None:
        """Take what the last record needs, so that it can be written where the run fills the disk."""
        if self.path is not None:
            with suppress(OSError):
                create(os.path.join(self.path, _ROOM), bytes(_ROOM_BYTES))

    def give_room(self) -> None:
        """Give back what was taken for the last record."""
        with suppress(OSError):
            os.unlink(os.path.join(self.path or "", _ROOM))

    def move(self) -> bool:
        """Go on in another folder, with what was written so far, as where a disk filled up; return whether there is one."""
        before, place = self.path, make_place(None)
        if place.path is None or before is None:
            return False
        for name in SAMPLES, ENVIRONMENT, LOG, *(os.path.join(RANKS, name) for name in _names(os.path.join(before, RANKS))):
            with suppress(OSError), open(os.path.join(before, name), "rb") as file:
                put(os.path.join(place.path, name), file.read(self._most))
        self.path, self.moved_from, self._is_new = place.path, before, True
        return True

    def append(self, name: str, lines: Sequence[bytes], most: int = MOST_LINES_BYTES) -> None:
        """Add lines to a file; above a size every second line of its older half is dropped."""
        if self.path is None or not lines:
            return
        path = os.path.join(self.path, name)
        try:
            with os.fdopen(os.open(path, _APPEND, 0o600), "ab") as file:
                file.write(b"".join(line + b"\n" for line in lines))
                size = file.tell()
            if size > most:
                _thin(path)
        except OSError as error:
            self._gap(name, error.strerror or str(error))

    def set_aside(self, attempt: int) -> None:
        """Move what an attempt left into a folder of its own."""
        place = os.path.join(self.path or "", ATTEMPTS, str(attempt))
        os.makedirs(place, mode=0o700, exist_ok=True)
        for name in os.listdir(self.path or "."):
            if name != ATTEMPTS and not name.startswith(CHANGED):
                os.rename(os.path.join(self.path or "", name), os.path.join(place, name))

    def remove(self) -> None:
        """Take away what was made, where it was made for this run."""
        if self.path is not None and self._is_new:
            remove_tree(self.path)
            if os.path.basename(self.path).startswith("rank-"):
                remove_if_empty(os.path.dirname(self.path))

    def _size(self, name: str) -> int:
        try:
            return os.stat(os.path.join(self.path or "", name)).st_size
        except OSError:
            return 0

    def _gap(self, what: str, why: str) -> None:
        if not any(gap.what == what and gap.why == why for gap in self.gaps):
            self.gaps.append(EvidenceGap(what=what, why=why))


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _thin(path: str) -> None:
    """Drop every second line of the older half of a file."""
    with open(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    half = len(lines) // 2
    put(path, b"".join([*lines[:half:2], *lines[half:]]))
