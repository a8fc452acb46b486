"""Files at the edge: written whole or not at all, with a copy of what was there; and which version a log speaks of."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress

from oomdoctor.errors import UsageError
from oomdoctor.opening import open_descriptor, open_file

BACKUP = ".bak-"
_NUMBER = re.compile(r"\d{1,6}\Z")
_MOST = 100_000
_NAME = 200
"""So much of a name is kept in that of the file beside it, which must not be too long itself."""
_LARGEST = 16 << 20
"""Bytes; a larger file is no config, and none is held in memory."""


def read_file(path: str) -> bytes | None:
    """Return the content of a file; None where it cannot be read or is far too large for a config."""
    try:
        with open_file(path) as file:
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= _LARGEST else None


def write_files(files: Mapping[str, bytes], before: Mapping[str, bytes]) -> dict[str, str]:
    """Put `files` in place; those of `before` are replaced and keep a copy. Return path -> copy.

    Raise UsageError, with nothing replaced, where a file changed since it was read, or a folder cannot be written.
    """
    ready: list[tuple[str, str]] = []
    copies: dict[str, str] = {}
    placed = 0
    try:
        for path, data in files.items():
            if read_file(path) != before.get(path):
                raise UsageError(f"{path} was changed by something else in the meantime; nothing was written")
            ready.append((_beside(os.path.realpath(path), data, private=path in before), path))
        for path in files:
            if path in before:
                copies[path] = _copy(path, before[path])
        for temporary, path in ready:
            _put(temporary, path, replaced=path in before)
            placed += 1
    except OSError as why:
        raise UsageError(f"cannot write {why.filename or ''}: {(why.strerror or str(why)).lower()}") from why
    finally:
        unneeded = [copies[path] for _, path in ready[placed:] if path in copies]
        for left in [*(temporary for temporary, _ in ready[placed:]), *unneeded]:
            with suppress(OSError):
                os.unlink(left)
    return copies


def write_whole(path: str, data: bytes) -> None:
    """Put `data` in place of a file, whole or not at all. Raise OSError where that fails; the old file is then as it was.

    What is no plain file, such as a pipe, and a file in a folder where none can be made, is written in place.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = None
    target = os.path.realpath(path)
    if status is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    if status is None or (stat.S_ISREG(status.st_mode) and os.access(os.path.dirname(target), os.W_OK)):
        temporary = _beside(target, data, private=status is not None)
        try:
            if status is not None:
                _same_rights(temporary, status)
            os.replace(temporary, target)
        except OSError:
            os.unlink(temporary)
            raise
        return
    with open(path, "wb") as file:
        file.write(data)


def version_at(path: str, moment: float | None) -> str:
    """Return the version of a file that was there at `moment` (seconds since the epoch): the file itself, or one of its copies.

    A copy keeps the time of the file that it was. Of versions that are all younger the oldest is taken.
    """
    versions = [*(f"{path}{BACKUP}{number}" for number in _numbers(path)), path]
    if moment is None or len(versions) == 1:
        return path
    older = [version for version in versions if _time(version) <= moment]
    return older[-1] if older else versions[0]


def last_modified(paths: list[str]) -> float | None:
    """Return when the youngest of these files was written; None where none of them is a file."""
    times = [_time(path) for path in paths if os.path.isfile(path)]
    return max(times, default=None)


def _beside(path: str, data: bytes, *, private: bool) -> str:
    """Return a new file with this content in the folder of `path`, on the disk before its name counts; `private` until it has its mode."""
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)[:_NAME]}.oomdoctor-{os.getpid()}")
    _new(temporary, data, 0o600 if private else 0o666)
    return temporary


def _new(path: str, data: bytes, mode: int) -> None:
    """Write a file that is not there yet, and leave none where that fails."""
    with open(open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb", buffering=0) as file:
        try:
            written = 0
            while written < len(data):
                written += file.write(data[written:])
            os.fsync(file.fileno())
        except OSError:
            os.unlink(path)
            raise


def _put(temporary: str, path: str, *, replaced: bool) -> None:
    target = os.path.realpath(path)
    if replaced:
        _same_rights(temporary, os.stat(target))
    else:
        # Takes the name, and fails where somebody has it.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.replace(temporary, target)


def _copy(path: str, data: bytes) -> str:
    """Return a copy of the file under the next free number, with its time and mode."""
    status = os.stat(path)
    start = max(_numbers(path), default=0) + 1
    for number in range(start, start + _MOST):
        copy = f"{path}{BACKUP}{number}"
        try:
            _new(copy, data, 0o600)
        except FileExistsError:
            continue
        _same_rights(copy, status)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
        return copy
    raise UsageError(f"{path} has too many copies")


def _same_rights(path: str, status: os.stat_result) -> None:
    """Give a file the mode of another one, and its owner where one may."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, status.st_mode & 0o7777)


def _numbers(path: str) -> list[int]:
    folder, name = os.path.split(path)
    prefix = name + BACKUP
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return sorted(int(tail) for entry in names if entry.startswith(prefix) and _NUMBER.match(tail := entry[len(prefix) :]))


def _time(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
