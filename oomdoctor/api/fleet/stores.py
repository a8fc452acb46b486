"""Where the rows of a triage are kept, and which triage was the last."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from oomdoctor import cache
from oomdoctor.errors import UsageError
from oomdoctor.triage.elsewhere.stores import is_in_store

_LAST = "triage_last-store"


def store_of(paths: Sequence[str]) -> str:
    """Return where the rows of some paths are kept by default: in the user's cache."""
    named = "\0".join(sorted(path if is_in_store(path) else os.path.realpath(path) for path in paths))
    return os.path.join(cache.folder(), f"triage-{hashlib.blake2b(named.encode('utf-8', 'surrogateescape'), digest_size=8).hexdigest()}")


def remember(store: str) -> None:
    """Record which triage was the last."""
    cache.keep(_LAST, os.path.abspath(store).encode("utf-8", "surrogateescape"))


def last_store(store: str | None) -> str:
    """Return a store that is named, or that of the last triage. Raise UsageError if there is none."""
    if store is not None:
        if not os.path.isdir(os.path.join(store, "parts")):
            raise UsageError(f"--store {store}: contains no triage")
        return store
    kept = cache.read(_LAST)
    path = None if kept is None else kept.decode("utf-8", "surrogateescape")
    if path is None or not os.path.isdir(os.path.join(path, "parts")):
        raise UsageError("there is no triage yet: create one with oomdoctor triage PATHS")
    return path
