"""The folder that a run leaves its evidence in, made before its command starts: nothing is loaded here but what that takes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

RANKS = "ranks"
"""The folder inside that recorders write to."""
TENSORFLOW = "tensorflow"
"""How the names of TensorFlow's own dumps begin, in that folder."""
MOST_BYTES = 50 << 20
"""What a folder may take, unless somebody asks for more."""
_MOST_TRIES = 1000


class EvidencePlace(NamedTuple):
    """Where the folder is; None where there is none."""

    path: str | None
    is_new: bool
    failed: tuple[tuple[str, str], ...] = ()
    """Paths that could not be made, and why."""


def make_place(path: str | None) -> EvidencePlace:
    """Make the folder: by default a new one below the working directory, else below the folder for temporary files."""
    if path is not None:
        is_new = not os.path.isdir(path)
        return _first_of([path], may_exist=True)._replace(is_new=is_new)
    names = _new_names()
    here = _first_of(names)
    if here.path is not None:
        return here
    elsewhere = _first_of([os.path.join(_temporary(), name) for name in names])
    return elsewhere._replace(failed=(*here.failed, *elsewhere.failed))


def remove_tree(path: str) -> None:
    """Delete a folder, as far as that can be; shutil does the same and loads every compressor for it."""
    for place, folders, files in os.walk(path, topdown=False):
        for name in files:
            with suppress(OSError):
                os.unlink(os.path.join(place, name))
        for name in folders:
            with suppress(OSError):
                os.rmdir(os.path.join(place, name))
    with suppress(OSError):
        os.rmdir(path)


def _first_of(paths: Sequence[str], *, may_exist: bool = False) -> EvidencePlace:
    """Make the first of these folders that can be made, for its owner alone; makedirs would leave all but the innermost open to others."""
    for path in paths:
        try:
            os.makedirs(path, mode=0o700, exist_ok=may_exist)
            os.makedirs(os.path.join(path, RANKS), mode=0o700, exist_ok=True)
        except OSError as error:
            if isinstance(error, FileExistsError) and not may_exist:
                continue
            return EvidencePlace(None, is_new=True, failed=((path, error.strerror or str(error)),))
        return EvidencePlace(os.path.abspath(path), is_new=True)
    return EvidencePlace(None, is_new=True)


def _temporary() -> str:
    """Return the folder for temporary files, as the tempfile module has it but without loading that."""
    return next((place for name in ("TMPDIR", "TEMP", "TMP") if (place := os.environ.get(name))), "/tmp")  # noqa: S108 - a new folder of ours


def _new_names() -> list[str]:
    """Return names for a new folder: by the time, and numbered where several runs start in one second."""
    name = time.strftime("oomdoctor-run-%Y%m%d-%H%M%S")
    return [name, *(f"{name}-{number}" for number in range(2, _MOST_TRIES))]
