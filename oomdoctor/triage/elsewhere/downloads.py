"""Copies files from a store in batches while they are being read; readers ask here where the bytes of a path are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.triage.elsewhere.stores import fetch_large, fetch_small, is_in_store
from oomdoctor.triage.log_file import PlacedFile

_BATCH_FILES = 256
_BATCH_BYTES = 256 << 20
_SMALL = 8 << 20
_LARGEST = 8 << 30
"""Larger objects are not copied."""

_DOWNLOADS: dict[str, str] = {}
"""The current copies made by this process: path in a store -> local path."""


class ToRead(Struct, frozen=True):
    """Files that are read together."""

    family: str
    key: str
    files: Sequence[PlacedFile]


def where(path: str) -> str:
    """Return where the bytes of a path are on this machine."""
    return _DOWNLOADS.get(path, path)


def brought_here(to_read: Iterable[ToRead]) -> Iterator[ToRead]:
    """Yield families whose files can now be read, one batch ahead; files that could not be copied say why."""
    batch: list[ToRead] = []
    count = size = 0
    for family in to_read:
        away = [placed.file for placed in family.files if placed.file.problem is None and is_in_store(placed.path)]
        if not away:
            yield family
            continue
        batch.append(family)
        count, size = count + len(away), size + sum(file.size for file in away)
        if count >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield from _copied(batch)
            batch, count, size = [], 0, 0
    if batch:
        yield from _copied(batch)


def _copied(batch: Sequence[ToRead]) -> Iterator[ToRead]:
    with TemporaryDirectory(prefix="oomdoctor-") as folder:
        problems = _copy([placed for family in batch for placed in family.files], folder)
        try:
            for family in batch:
                yield replace(family, files=[_told(placed, problems.get(placed.path)) for placed in family.files])
        finally:
            _DOWNLOADS.clear()


def _copy(placed: Sequence[PlacedFile], folder: str) -> dict[str, str]:
    """Copy files from their stores, record where they are, and return which could not be copied and why."""
    away = [each.file for each in placed if each.file.problem is None and is_in_store(each.path)]
    problems: dict[str, str] = {}
    small = [file for file in away if file.size <= _SMALL]
    for number, (file, got) in enumerate(zip(small, fetch_small(small))):
        if isinstance(got, str):
            problems[file.path] = got
            continue
        _DOWNLOADS[file.path] = _name(folder, f"small{number}", file.path)
        with open(_DOWNLOADS[file.path], "wb") as copy:
            copy.write(got)
    for number, file in enumerate(file for file in away if file.size > _SMALL):
        path = _name(folder, f"large{number}", file.path)
        why = "too large to copy from a store" if file.size > _LARGEST else fetch_large(file, path)
        if why is None:
            _DOWNLOADS[file.path] = path
        else:
            problems[file.path] = why
    return problems


def _name(folder: str, name: str, path: str) -> str:
    """Return a name for a copy with the original's ending, which archive readers depend on."""
    ending = os.path.basename(path)[-12:]
    return os.path.join(folder, name + "".join(char if char.isalnum() or char == "." else "_" for char in ending))


def _told(placed: PlacedFile, problem: str | None) -> PlacedFile:
    return placed if problem is None else replace(placed, file=replace(placed.file, problem=problem))
