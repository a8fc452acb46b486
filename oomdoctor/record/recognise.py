"""Whether a folder is one that `oomdoctor run` left. It imports next to nothing: every `diagnose FOLDER` asks."""

from __future__ import annotations

import os
import re

_RUN, _RANKS = "run.json", "ranks"
_MARK = b'"oomdoctor/evidence/v1"'
_KEY = re.compile(r"pid-\d{1,10}\.(?:hello\.json|ring|oom-\d\.(?:json|pickle)|exception\.json|end\.json)$")


def is_evidence(path: str) -> bool:
    """Return whether a folder is the evidence of a run, or what is left of it."""
    try:
        with open(os.path.join(path, _RUN), "rb") as file:
            if _MARK in file.read(4096):
                return True
    except OSError:
        pass
    try:
        return any(_KEY.search(name) for name in os.listdir(os.path.join(path, _RANKS)))
    except OSError:
        return False
