"""Whether anything changed below some paths: one hash over the names, sizes and times of all that lies there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from msgspec.json import encode

from oomdoctor.triage.listing import VisitedFolder, list_folders, visit

_BLOCK = 1 << 20


class PathsDigest:
    """A hash that is equal as long as nothing below some paths changed, out of what a walk through those that are folders meets.

    What is no log counts too, and changes nothing but this hash.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        for path in paths:
            if not os.path.isdir(path):
                self._take(list(list_folders([path])))

    def add(self, met: VisitedFolder) -> None:
        """Take a folder."""
        files = [_described(entry) for entry in met.entries if not entry.is_dir(follow_symlinks=False)]
        self._take((met.path, met.problem, met.folders, files))

    def _take(self, told: object) -> None:
        try:
            self._digest.update(encode(told))
        except UnicodeEncodeError:  # a name that is no UTF-8
            self._digest.update(repr(told).encode("utf-8", "surrogateescape"))

    @property
    def text(self) -> str:
        """Return the hash."""
        return self._digest.hexdigest()


def digest_of(paths: Sequence[str]) -> str:
    """Return the hash of some paths."""
    digest = PathsDigest(paths)
    for path in paths:
        for met in visit(path) if os.path.isdir(path) else ():
            digest.add(met)
    return digest.text


def digest_of_file(path: str) -> str:
    """Return a hash of what stands in a file of ours."""
    digest = hashlib.blake2b(digest_size=8)
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _described(entry: os.DirEntry[str]) -> tuple[str, int, int]:
    """Return what tells a file from its later self; a link stands for what it leads to."""
    try:
        status = entry.stat()
    except OSError as why:
        return entry.name, -2, why.errno or 0
    return entry.name, status.st_size, status.st_mtime_ns
