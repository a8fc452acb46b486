"""The user's cache: things that can be made again, kept whole or not at all. A cache that cannot be used is no error."""

from __future__ import annotations

import os

_KEPT = 8


def folder() -> str:
    """Where they lie."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "oomdoctor")


def read(name: str, where: str | None = None) -> bytes | None:
    """Return what was kept under a name; None where nothing was."""
    try:
        with open(os.path.join(folder() if where is None else where, name), "rb") as file:
            return file.read()
    except OSError:
        return None


def keep(name: str, data: bytes, where: str | None = None) -> None:
    """Keep data under a name (`kind-....`), and of the same kind only the newest."""
    import tempfile  # noqa: PLC0415 - only when something was made

    where = folder() if where is None else where
    kind = name.partition("-")[0] + "-"
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where, prefix=kind, suffix=".new")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(where, name))
        kept = [os.path.join(where, one) for one in os.listdir(where) if one.startswith(kind) and not one.endswith(".new")]
        for old in sorted(kept, key=os.path.getmtime)[:-_KEPT]:
            os.unlink(old)
    except OSError:
        return
