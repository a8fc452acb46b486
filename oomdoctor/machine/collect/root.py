"""Files below a root, read with a limit: the machine's own, or a recorded one in a test."""

from __future__ import annotations

import os

from msgspec import Struct

_LIMIT = 1 << 20
_ENTRIES = 20_000


class Root(Struct, frozen=True):
    """A file tree. A path that cannot be read is None, an empty list, or False; never an exception."""

    path: str = "/"

    def at(self, path: str) -> str:
        """Where an absolute path of the tree really lies."""
        return os.path.join(self.path, path.lstrip("/"))

    def read(self, path: str, limit: int = _LIMIT) -> str | None:
        """Read the beginning of a file as text, NUL bytes taken away."""
        try:
            with open(self.at(path), "rb") as file:
                return file.read(limit).decode("utf-8", "replace").replace("\0", "")
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        """Read a file that holds one whole number."""
        text = (self.read(path, 64) or "").strip()
        return int(text) if text.isdecimal() else None

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        try:
            with os.scandir(self.at(path)) as entries:
                return sorted(entry.name for entry, _ in zip(entries, range(_ENTRIES)))
        except (OSError, ValueError):
            return []

    def exists(self, path: str) -> bool:
        """Return whether there is something at a path."""
        try:
            return os.path.exists(self.at(path))
        except ValueError:
            return False
