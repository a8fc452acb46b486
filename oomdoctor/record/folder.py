"""Write the evidence folder: whole files or none, bounded, and never an error that would reach the run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from msgspec.json import encode
from msgspec.json import format as indented

from oomdoctor.record.evidence import ATTEMPTS, CHANGED, MOST_BYTES, RANKS, EvidenceGap

_MOST_TRIES = 1000
MOST_LINES_BYTES = 8 << 20
"""Of samples."""


class EvidenceFolder:
    """The folder of a run. What cannot be written becomes a gap, once for each reason."""

    def __init__(self, path: str | None, most: int = MOST_BYTES) -> None:
        self.gaps: list[EvidenceGap] = []
        self._most = most
        self._left = most
        self._is_new = path is None or not os.path.isdir(path)
        self.path = self._made(path)

    def _made(self, path: str | None) -> str | None:
        """Make the folder and return its path. None where there is no place.

        The default is a new one below the working directory, else below the folder for temporary files.
        """
        if path is not None:
            return self._first_of([path], exist_ok=True)
        names = _new_names()
        return self._first_of(names) or self._first_of([os.path.join(_temporary(), name) for name in names])

    def _first_of(self, paths: Sequence[str], *, exist_ok: bool = False) -> str | None:
        for path in paths:
            try:
                os.makedirs(os.path.join(path, RANKS), mode=0o700, exist_ok=exist_ok)
            except FileExistsError:
                continue
            except OSError as error:
                why = error.strerror or str(error)
                self.gaps.append(EvidenceGap(what=f"evidence folder {path}", why=why, how="oomdoctor run --out DIR"))
                return None
            return os.path.abspath(path)
        return None

    def write(self, name: str, data: bytes) -> bool:
        """Write a file, whole or not at all; return whether it is there."""
        if self.path is None:
            return False
        if len(data) > self._left:
            self._gap(name, f"the evidence would be larger than {self._most >> 20} MiB")
            return False
        target = os.path.join(self.path, name)
        beside = f"{target}.part"
        try:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            with open(beside, "wb") as file:
                file.write(data)
            os.replace(beside, target)
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

    def append(self, name: str, lines: Sequence[bytes], most: int = MOST_LINES_BYTES) -> None:
        """Add lines to a file; above a size every second line of its older half is dropped."""
        if self.path is None or not lines:
            return
        path = os.path.join(self.path, name)
        try:
            with open(path, "ab") as file:
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
        if self.path is None or not self._is_new:
            return
        for place, folders, files in os.walk(self.path, topdown=False):
            for name in files:
                with suppress(OSError):
                    os.unlink(os.path.join(place, name))
            for name in folders:
                with suppress(OSError):
                    os.rmdir(os.path.join(place, name))
        with suppress(OSError):
            os.rmdir(self.path)

    def _size(self, name: str) -> int:
        try:
            return os.stat(os.path.join(self.path or "", name)).st_size
        except OSError:
            return 0

    def _gap(self, what: str, why: str) -> None:
        if not any(gap.what == what and gap.why == why for gap in self.gaps):
            self.gaps.append(EvidenceGap(what=what, why=why))


def _thin(path: str) -> None:
    """Drop every second line of the older half of a file."""
    with open(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    half = len(lines) // 2
    with open(f"{path}.part", "wb") as file:
        file.write(b"".join([*lines[:half:2], *lines[half:]]))
    os.replace(f"{path}.part", path)


def _temporary() -> str:
    """Return the folder for temporary files, as the tempfile module has it but without loading that."""
    return next((place for name in ("TMPDIR", "TEMP", "TMP") if (place := os.environ.get(name))), "/tmp")  # noqa: S108 - a new folder of ours


def _new_names() -> list[str]:
    """Return names for a new folder: by the time, and numbered where several runs start in one second."""
    name = time.strftime("oomdoctor-run-%Y%m%d-%H%M%S")
    return [name, *(f"{name}-{number}" for number in range(2, _MOST_TRIES))]
