"""A file in a fleet: its path, what shows whether it has changed, and what its path says about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from msgspec import Struct

MEMBER = "!"
"""Separates the path of an archive from the name of a member."""


class LogFile(Struct, frozen=True, array_like=True):
    """A file as found by the listing."""

    path: str
    size: int
    modified: int
    """Nanoseconds since 1970."""
    owner: int = 0
    """The user ID of its owner; 0 if unknown."""
    problem: str | None = None
    """Why it cannot be read, if the listing already shows that."""
    tag: str | None = None
    """The store's tag for its current contents (ETag); None if its time shows whether it changed."""


class PlacedFile(Struct, frozen=True, array_like=True):
    """A file with what its path says about it (rules/layouts.yaml)."""

    file: LogFile
    layout: str
    facts: Mapping[str, str] = {}

    @property
    def path(self) -> str:
        """Its path."""
        return self.file.path


def inputs_key(files: Iterable[LogFile]) -> str:
    """Return a value that stays the same as long as no file of a job changes."""
    digest = hashlib.blake2b(digest_size=12)
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.path}\0{file.size}\0{file.tag or file.modified}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
