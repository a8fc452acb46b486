"""The user's cache: things that can be made again, kept whole or not at all. A cache that cannot be used is no error."""

from __future__ import annotations

import os

_KEPT = 8


def folder() -> str:
    """Where they lie."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "oomdoctor")


def read(name: str, path: str | None = None) -> bytes | None:
    """Return what was kept under a name; None where nothing was."""
    try:
        with open(os.path.join(folder() if path is None else path, name), "rb") as file:
            return file.read()
    except OSError:
        return None


def keep(name: str, data: bytes, path: str | None = None) -> None:
    """Keep data under a name (`kind-....`), and of the same kind only the newest."""
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
