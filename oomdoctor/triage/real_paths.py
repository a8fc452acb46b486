"""Resolve paths entered by a user to one real path each: a folder is the same folder whichever way it is spelled.

Folders are resolved, and each once. A link to a file keeps its own name in its real folder, since names say whose a log is
(rules/layouts.yaml): what kubelet calls by its pod, Docker calls by its container.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache

from oomdoctor.triage.elsewhere.stores import is_in_store


def real_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield the real paths of files, folders and glob matches; store URLs are unchanged."""
    for path in paths:
        if is_in_store(path):
            yield path
        elif glob.has_magic(path) and not os.path.lexists(path):
            yield from map(_real, sorted(glob.glob(path, recursive=True)) or [path])
        else:
            yield _real(path)


def _real(path: str) -> str:
    if "\0" in path:
        return path
    if os.path.isdir(path):
        return os.path.realpath(path)
    folder, name = os.path.split(path)
    return os.path.join(_real_folder(folder or os.curdir), name)


@lru_cache(maxsize=4096)
def _real_folder(path: str) -> str:
    return os.path.realpath(path)
