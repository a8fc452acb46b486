"""The folder that a run leaves its evidence in, made before its command starts: nothing is loaded here but what that takes.

What lies in it is on the path of the run's interpreters. So it is a folder of the caller's own to which nobody else may write: what
somebody else has made is refused, and no link is followed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

RANKS = "ranks"
"""The folder inside that recorders write to."""
TENSORFLOW = "tensorflow"
"""How the names of TensorFlow's own dumps begin, in that folder."""
MOST_BYTES = 50 << 20
"""What a folder may take, unless somebody asks for more."""
_OWN = ("run.json", "attempts", "report.json", "environment.json", "samples.jsonl", "log.txt", "configs", "oomdoctor-inside", RANKS)
_OURS = ("changed-", "retry", "rank-", "first.json")
"""Names that only a run leaves, and how others of its names begin."""
_MOST_TRIES = 1000
_ROOM = 256 << 10
"""Bytes: what the record of a short run, a report and the recorder take."""


class EvidencePlace(NamedTuple):
    """Where the folder is; None where there is none."""

    path: str | None
    is_new: bool
    failed: tuple[tuple[str, str], ...] = ()
    """Paths that could not be made, and why."""


class NotOurs(Exception):
    """A folder that somebody named and that must not be used: why, in words."""


def make_place(path: str | None, task: tuple[int, str] | None = None) -> EvidencePlace:
    """Make the folder: the one that is named, else a new one among those of the caller's runs, else below the folder for temporary files.

    `task` is the rank of a launcher's task and the name of its job: the tasks of a job have folders of their own in one folder.
    A place where nothing can be written is passed over, as where a disk is full. Raise NotOurs where a named one is somebody else's, is
    open to others, or holds something else.
    """
    failed: list[tuple[str, str]] = []
    if path is not None:
        named = _named(path) if task is None else _of_a_task(path, task[0])
        if named.path is not None:
            return named
        failed += named.failed
    for folder in filter(os.path.isabs, (runs_folder(), os.path.join(_temporary(), f"oomdoctor-{_user()}", "runs"))):
        made = _among(folder) if task is None else _of_a_task(os.path.join(folder, task[1]), task[0])
        if made.path is not None:
            return made._replace(failed=tuple(failed))
        failed += made.failed
    return EvidencePlace(None, is_new=True, failed=tuple(failed))


def runs_folder() -> str:
    """Return where the runs of the caller lie: `$XDG_STATE_HOME/oomdoctor/runs`, by default below `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return os.path.join(state if os.path.isabs(state) else os.path.expanduser(os.path.join("~", ".local", "state")), "oomdoctor", "runs")


def can_be_moved(path: str) -> bool:
    """Return whether somebody else could put another folder in its place: may write to one above it, unless that is sticky."""
    if os.name != "posix":
        return False
    above = os.path.realpath(path)
    while above != (above := os.path.dirname(above)):
        seen = os.stat(above)
        if seen.st_uid not in (0, os.geteuid()) or (seen.st_mode & 0o022 and not seen.st_mode & stat.S_ISVTX):
            return True
    return False


def remove_tree(path: str) -> None:
    """Delete a folder, as far as that can be; shutil does the same and loads every compressor for it. A link is deleted itself."""
    if os.path.islink(path):
        with suppress(OSError):
            os.unlink(path)
        return
    for place, folders, files in os.walk(path, topdown=False):
        for name in (*files, *folders):
            with suppress(OSError):
                inner = os.path.join(place, name)
                os.rmdir(inner) if name in folders and not os.path.islink(inner) else os.unlink(inner)
    with suppress(OSError):
        os.rmdir(path)


def remove_if_empty(path: str) -> None:
    """Delete the folder of a job once the last of its tasks has left nothing in it."""
    with suppress(OSError):
        os.rmdir(path)


def create(path: str, data: bytes) -> None:
    """Write a new file for its owner alone, whatever the umask. Raise OSError where something of that name is there, a link too."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def put(path: str, data: bytes) -> None:
    """Write a file whole or not at all: beside its place, then into it. What stood in its place is replaced, a link itself."""
    beside = f"{path}.part"
    with suppress(FileNotFoundError):
        os.unlink(beside)
    try:
        create(beside, data)
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _named(path: str) -> EvidencePlace:
    """Make a folder that somebody named, or take it where it is the caller's own and holds nothing but what runs leave."""
    is_new = not os.path.lexists(path)
    if not is_new:
        _look_at(path)
    try:
        if is_new:
            _make(path)
        os.chmod(path, 0o700)
        _make_ranks(path)
        _try(path)
    except OSError as error:
        if is_new:
            remove_tree(path)
        return EvidencePlace(None, is_new=True, failed=((path, error.strerror or str(error)),))
    return EvidencePlace(os.path.abspath(path), is_new=is_new)


def _of_a_task(job: str, rank: int) -> EvidencePlace:
    """Make the folder of a task in that of its job, which the first of the tasks makes."""
    if os.path.lexists(job):
        _look_at(job)
    return _among(job, f"rank-{rank}")


def _look_at(path: str) -> None:
    """Raise NotOurs where a folder is none, somebody else's, open to others, or holds something else."""
    try:
        seen = os.lstat(path)
        names = os.listdir(path) if stat.S_ISDIR(seen.st_mode) else []
    except OSError as error:
        raise NotOurs(f"{path}: {error.strerror}") from None
    if not stat.S_ISDIR(seen.st_mode):
        raise NotOurs(f"{path} is not a folder: choose a new one")
    if hasattr(os, "geteuid") and seen.st_uid != os.geteuid():
        raise NotOurs(f"{path} belongs to another user, who could have code run in your processes: choose a new folder")
    if os.name == "posix" and seen.st_mode & 0o022:
        raise NotOurs(f"others may write to {path}, and have code run in your processes: choose a new folder, or `chmod go-w` it")
    other = next((name for name in sorted(names) if name not in _OWN and not name.startswith(_OURS)), None)
    if other is not None:
        raise NotOurs(f"{path} contains other files ({other}): choose a new folder")


def _among(folder: str, called: str | None = None) -> EvidencePlace:
    """Make a new folder among those of the caller's runs, or of one name among those of a job."""
    try:
        _make(folder)
        seen = os.lstat(folder)
    except OSError as error:
        return EvidencePlace(None, is_new=True, failed=((folder, error.strerror or str(error)),))
    if not stat.S_ISDIR(seen.st_mode) or (hasattr(os, "geteuid") and (seen.st_uid != os.geteuid() or seen.st_mode & 0o022)):
        return EvidencePlace(None, is_new=True, failed=((folder, "others may write to it"),))
    for name in _new_names(called):
        path = os.path.join(folder, name)
        try:
            os.mkdir(path, 0o700)
            _make_ranks(path)
            _try(path)
        except FileExistsError:
            continue
        except OSError as error:
            remove_tree(path)
            return EvidencePlace(None, is_new=True, failed=((path, error.strerror or str(error)),))
        return EvidencePlace(path, is_new=True)
    return EvidencePlace(None, is_new=True)


def _make(path: str) -> None:
    """Make a folder, and those above it, for its owner alone; makedirs would leave all but the innermost open to others."""
    missing: list[str] = []
    above = os.path.abspath(path)
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _try(path: str) -> None:
    """Raise OSError where nothing can be written: a folder can be made where there is no room for a file, or no quota left."""
    name = os.path.join(path, "room")
    try:
        create(name, bytes(_ROOM))
    finally:
        with suppress(OSError):
            os.unlink(name)


def _make_ranks(path: str) -> None:
    ranks = os.path.join(path, RANKS)
    with suppress(FileExistsError):
        os.mkdir(ranks, 0o700)
    if not stat.S_ISDIR(os.lstat(ranks).st_mode):
        raise NotADirectoryError(20, "Not a directory", ranks)


def _temporary() -> str:
    """Return the folder for temporary files, as the tempfile module has it but without loading that."""
    return next((place for name in ("TMPDIR", "TEMP", "TMP") if (place := os.environ.get(name))), "/tmp")  # noqa: S108 - a new folder of ours


def _user() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else os.environ.get("USERNAME", "runs")


def _new_names(called: str | None) -> Iterator[str]:
    """Yield names for a new folder: by the time, the machine and the process, as a home is shared by the nodes of a cluster."""
    if called is not None:
        yield from (called, *(f"{called}-{number}" for number in range(2, _MOST_TRIES)))
        return
    node = os.uname().nodename.split(".")[0][:40] if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "here")
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{node}-{os.getpid()}"
    yield name
    yield from (f"{name}-{number}" for number in range(2, _MOST_TRIES))
