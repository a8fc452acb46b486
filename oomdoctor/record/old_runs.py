"""The runs of a user, of which only so many stay for so long: what `oomdoctor run` keeps by itself it also takes away."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress

from oomdoctor.record.evidence_place import remove_tree, runs_folder

MOST_RUNS = 50
MOST_DAYS = 30
_NAME = re.compile(r"(?:\d{8}-\d{6}-|job-)[\w.-]{1,100}$")
_AT_WORK = 86400.0
"""Seconds: a run that has written nothing for so long has ended, or its node is gone."""


def remove_old_runs(now: float | None = None) -> None:
    """Remove the runs above MOST_RUNS, the oldest first, and those older than MOST_DAYS; only folders that a run made, none at work."""
    folder = runs_folder()
    runs = sorted(((_last_written(path), path) for name in _names(folder) if (path := _run(folder, name)) is not None), reverse=True)
    now = time.time() if now is None else now
    for number, (written, path) in enumerate(runs):
        if (now - written > _AT_WORK and (number >= MOST_RUNS or now - written > MOST_DAYS * 86400)) or (
            number >= MOST_RUNS and _has_ended(path)
        ):
            remove_tree(path)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _run(folder: str, name: str) -> str | None:
    """Return the path of a run; None where the name is another's, or it is no folder of the caller's own."""
    path = os.path.join(folder, name)
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    is_own = not hasattr(os, "geteuid") or seen.st_uid == os.geteuid()
    return path if _NAME.match(name) and stat.S_ISDIR(seen.st_mode) and is_own else None


def _last_written(path: str) -> float:
    """Return when the record or the samples of a run were last written, else when its folder was."""
    times = []
    for name in ("run.json", "samples.jsonl", "ranks", ""):
        with suppress(OSError):
            times.append(os.lstat(os.path.join(path, name)).st_mtime)
    return max(times, default=0.0)


def _has_ended(path: str) -> bool:
    """Return whether its record says how it ended."""
    with suppress(OSError), open(os.path.join(path, "run.json"), "rb") as file:
        return re.search(rb'"end": \d', file.read(1 << 16)) is not None
    return False
