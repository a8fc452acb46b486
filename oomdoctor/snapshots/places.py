"""Places in programs as a person reads them: the part of a path that tells, and no user's name."""

from __future__ import annotations

import re
from functools import lru_cache

from oomdoctor.redaction.redact_secrets import redact_secrets

_LIBRARY = re.compile(r".*[\\/](?:site|dist)-packages[\\/]|.*[\\/]lib[\\/]python\d[\w.]*[\\/]")
_NOTEBOOK = re.compile(r"(?:.*[\\/]ipykernel_\d+[\\/]\d+\.py|<ipython-input-[^>]*>)(?=:\d+:)")
_COMPILED = re.compile(r".*[\\/]torchinductor_[^\\/]+[\\/](?:.*[\\/])?")
_HOME = re.compile(
    r"(?:[A-Za-z]:)?[\\/](?:home|Users|root)(?:(?<!root)[\\/][^\\/]+)?[\\/]|(?:[A-Za-z]:)?[\\/](?:tmp|mnt|data|workspace)[\\/]"
)
_PARTS = 2
_PLACES = 4096
_BY_A_COMPILER = "torchinductor/"


@lru_cache(_PLACES)
def short_place(place: str) -> str:
    """Return `file:line:function` with the part of the path that tells: below a library's folder, else the file and its folder.

    What shows itself as a secret only by the whole path is left whole, or nothing would take it out later.
    """
    if _NOTEBOOK.match(place):
        return _NOTEBOOK.sub("notebook", place)
    short = _end_of_path(place)
    is_safe = redact_secrets(place).replace("\\", "/").endswith(short.removeprefix(_BY_A_COMPILER))
    return short if is_safe else place


def _end_of_path(place: str) -> str:
    for folder, shown in ((_LIBRARY, ""), (_COMPILED, _BY_A_COMPILER)):
        if folder.match(place):
            return shown + folder.sub("", place, count=1).replace("\\", "/")
    parts = _HOME.sub("", place, count=1).replace("\\", "/").split("/")
    return "/".join(parts[-_PARTS:])
