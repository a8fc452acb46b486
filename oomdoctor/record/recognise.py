"""Whether a folder is one that `oomdoctor run` left. It imports little: every `diagnose FOLDER` asks."""

from __future__ import annotations

import os
import re

from oomdoctor.opening import open_file
from oomdoctor.record.first_failure import decisive_task

_RUN, _RANKS = "run.json", "ranks"
_MARK = b'"oomdoctor/evidence/v1"'
_KEY = re.compile(r"pid-\d{1,10}\.(?:hello\.json|ring|oom-\d\.(?:json|pickle)|exception\.json|end\.json)$")


def is_evidence(path: str) -> bool:
    """Return whether a folder is the evidence of a run, or what is left of it."""
    try:
        with open_file(os.path.join(path, _RUN)) as file:
            if _MARK in file.read(4096):
                return True
    except OSError:
        pass
    try:
        return any(_KEY.search(name) for name in os.listdir(os.path.join(path, _RANKS)))
    except OSError:
        return False


def evidence_of(path: str) -> str | None:
    """Return the folder that holds the evidence of a run, or of the task of a job that a report is about; None where there is none."""
    if is_evidence(path):
        return path
    task = decisive_task(path)
    return task if task is not None and is_evidence(task) else None
