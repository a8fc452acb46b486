"""Write the evidence folder: whole files or none, bounded, and never an error that would reach the run."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.json import encode
from msgspec.json import format as indented

from oomdoctor.record.evidence import ATTEMPTS, CHANGED, EvidenceGap
from oomdoctor.record.evidence_place import MOST_BYTES, EvidencePlace, remove_tree

MOST_LINES_BYTES = 8 << 20
"""Of samples."""


class EvidenceFolder:
    """The folder of a run. What cannot be written becomes a gap, once for each reason."""

    def __init__(self, place: EvidencePlace, most: int = MOST_BYTES) -> None:
        self.path = place.path
        self.gaps = [EvidenceGap(what=f"evidence folder {path}", why=why, how="oomdoctor run --out DIR") for path, why in place.failed]
        self._is_new = place.is_new
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
        if self.path is not None and self._is_new:
            remove_tree(self.path)

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
