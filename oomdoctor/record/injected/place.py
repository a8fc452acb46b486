"""Where a process writes, and how: whole files, renamed into their place, within what the run may take."""

from __future__ import annotations

import json
import os
import pickle
from typing import Any, Callable

from .guard import Figures, note

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_WORLD_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_PROTOCOL = 4
"""Of pickles: every Python from 3.7 on reads it."""


def settings() -> tuple[str, int, int]:
    """Return the evidence folder, the level and the most bytes of snapshots, as the wrapper wrote them, in reverse, a line each.

    The environment may ask for another level.
    """
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings"), "rb") as file:
        most, level, folder = file.read().split(b"\n", 2)
    override = os.environ.get("OOMDOCTOR_LEVEL", "")
    return os.fsdecode(folder), int(override if override in ("0", "1", "2") else level), int(most)


def open_new(path: str) -> Any:
    """Open a new file for its owner alone, whatever the umask; what is there already, a link too, is not written to."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def rank() -> int | None:
    """Return the rank that a launcher gave this process."""
    return _number(_RANKS)


def local_rank() -> int | None:
    """Return the rank among the processes of this node."""
    return _number(_LOCAL_RANKS)


def world_size() -> int | None:
    """Return how many processes the job has."""
    return _number(_WORLD_SIZES)


def restart() -> int | None:
    """Return how often torchrun started this worker again."""
    return _number(("TORCHELASTIC_RESTART_COUNT",))


def _number(names: tuple[str, ...]) -> int | None:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit() and len(value) < 8:
            return int(value)
    return None


class RankFiles:
    """The files of this process in the evidence folder."""

    def __init__(self, folder: str, most: int) -> None:
        self.ranks = os.path.join(folder, "ranks")
        number = rank()
        self.key = ("" if number is None else "rank-%d." % number) + "pid-%d" % os.getpid()
        self._most = most

    def path(self, kind: str) -> str:
        """Return the path of one of them."""
        return os.path.join(self.ranks, "%s.%s" % (self.key, kind))

    def write_json(self, kind: str, value: Figures) -> None:
        """Write a structure; it is there whole, also after SIGKILL, as the system holds what was written."""
        data = json.dumps(value, default=repr).encode("utf-8", "backslashreplace")
        self._put(self.path(kind), lambda file: file.write(data), self._most)

    def write_pickle(self, kind: str, value: Any) -> None:
        """Write a snapshot, and to the disk. It is left out where the folder would grow too large."""

        def write(file: Any) -> None:
            pickle.dump(value, file, protocol=_PROTOCOL)
            file.flush()
            os.fsync(file.fileno())

        path = self.path(kind)
        if not self._put(path, write, self._most - self._taken(path)):
            note(kind, "the snapshots of the run would need more than %d MiB" % (self._most >> 20), "oomdoctor run --level 1")

    def _put(self, path: str, write: Callable[[Any], Any], most: int) -> bool:
        """Write beside a file and take its place, unless it is too large; leave nothing half."""
        part = path + ".part"
        if os.path.lexists(part):
            os.unlink(part)
        try:
            with open_new(part) as file:
                write(file)
                size: int = file.tell()
            if size <= most:
                os.replace(part, path)
            return size <= most
        finally:
            if os.path.lexists(part):
                os.unlink(part)

    def _taken(self, without: str) -> int:
        """Return the bytes of every snapshot of the run, but the one that is replaced."""
        files = (entry for entry in os.scandir(self.ranks) if entry.name.endswith(".pickle") and entry.path != without)
        return sum(entry.stat().st_size for entry in files)
