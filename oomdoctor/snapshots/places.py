"""Places in programs as a person reads them: the part of a path that tells, and no user's name."""

from __future__ import annotations

import re

_LIBRARY = re.compile(r".*[\\/](?:site|dist)-packages[\\/]|.*[\\/]lib[\\/]python\d[\w.]*[\\/]")
_NOTEBOOK = re.compile(r"(?:.*[\\/]ipykernel_\d+[\\/]\d+\.py|<ipython-input-[^>]*>)(?=:\d+:)")
_COMPILED = re.compile(r".*[\\/]torchinductor_[^\\/]+[\\/](?:.*[\\/])?")
_HOME = re.compile(
    r"(?:[A-Za-z]:)?[\\/](?:home|Users|root)(?:(?<!root)[\\/][^\\/]+)?[\\/]|(?:[A-Za-z]:)?[\\/](?:tmp|mnt|data|workspace)[\\/]"
)
_PARTS = 2


def short_place(place: str) -> str:
    """Return `file:line:function` with the part of the path that tells: below a library's folder, else the file and its folder."""
    if _NOTEBOOK.match(place):
        return _NOTEBOOK.sub("notebook", place)
    for folder, shown in ((_LIBRARY, ""), (_COMPILED, "torchinductor/")):
        if folder.match(place):
            return shown + folder.sub("", place, count=1).replace("\\", "/")
    parts = _HOME.sub("", place, count=1).replace("\\", "/").split("/")
    return "/".join(parts[-_PARTS:])
