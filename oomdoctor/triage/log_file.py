"""A file of a fleet: where it lies, what tells whether it changed, and what its path says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from msgspec import Struct

MEMBER = "!"
"""Between the path of an archive and the name of a member of it."""


class LogFile(Struct, frozen=True, array_like=True):
    """One file, as the listing found it."""

    path: str
    size: int
    modified: int
    """Nanoseconds since 1970."""
    owner: int = 0
    """The user id that it belongs to; 0 where nobody knows."""
    problem: str | None = None
    """Why it cannot be read, where the listing already tells."""
    tag: str | None = None
    """What a store calls what is in it now, its e-tag; None where its time tells whether it changed."""


class PlacedFile(Struct, frozen=True, array_like=True):
    """A file with what its path says of it (rules/layouts.yaml)."""

    file: LogFile
    layout: str
    facts: Mapping[str, str] = {}

    @property
    def path(self) -> str:
        """Where it lies."""
        return self.file.path


def inputs_key(files: Iterable[LogFile]) -> str:
    """Return what is equal as long as no file of a job changed."""
    digest = hashlib.blake2b(digest_size=12)
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.path}\0{file.size}\0{file.tag or file.modified}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
