"""The user's cache: things that can be recreated, kept completely or not at all. An unusable cache is not an error."""

from __future__ import annotations

import os
import stat

_KEPT = 8
_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def folder() -> str:
    """Return the folder they are in."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "oomdoctor")


def read(name: str, path: str | None = None) -> bytes | None:
    """Return what was kept under a name; None if nothing was, or if someone else could have written it."""
    try:
        handle = os.open(os.path.join(folder() if path is None else path, name), _FLAGS)
        with open(handle, "rb") as file:
            return file.read() if _is_own(os.fstat(handle)) else None
    except OSError:
        return None


def _is_own(status: os.stat_result) -> bool:
    """Return whether a file can have been written only by this user or root. What is kept is as trusted as the program itself."""
    is_plain = stat.S_ISREG(status.st_mode)
    return is_plain and (not hasattr(os, "geteuid") or (status.st_uid in (0, os.geteuid()) and not status.st_mode & _BY_OTHERS))


def keep(name: str, data: bytes, path: str | None = None) -> None:
    """Keep data under a name (`kind-....`), and only the newest of each kind."""
    path = folder() if path is None else path
    kind = name.partition("-")[0] + "-"
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        temporary = os.path.join(path, f"{kind}{os.urandom(8).hex()}.new")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(path, name))
        kept = [os.path.join(path, entry) for entry in os.listdir(path) if entry.startswith(kind) and not entry.endswith(".new")]
        for old in sorted(kept, key=os.path.getmtime)[:-_KEPT]:
            os.unlink(old)
    except OSError:
        return
