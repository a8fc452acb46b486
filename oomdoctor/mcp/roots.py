"""The folders that an agent may read. A path that leads out of them, by `..` or by a link, is refused.

What a path leads to, a folder of logs or a config that names another file, is opened by `oomdoctor.opening`, behind the same fence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

from oomdoctor.errors import UsageError
from oomdoctor.opening import OUTSIDE, confine


class Roots(Struct, frozen=True):
    """Folders, their links resolved; relative paths begin in the first."""

    folders: tuple[str, ...]

    def path(self, path: str) -> str:
        """Return a path as it is read: relative to the first folder where it lies there. Raise UsageError where it leads out of all."""
        try:
            real = os.path.realpath(os.path.join(self.folders[0], os.path.expanduser(path)))
        except ValueError as why:
            raise UsageError(f"{path!r}: {why}") from why
        home = next((folder for folder in self.folders if real == folder or real.startswith(os.path.join(folder, ""))), None)
        if home is None:
            raise UsageError(f"{path} is {OUTSIDE}: {', '.join(self.folders)} (oomdoctor mcp --root DIR)")
        inside = os.path.relpath(real, home) if home == self.folders[0] else real
        return os.path.join(os.curdir, inside) if inside == "-" else inside  # "-" alone is standard input, on which the client speaks

    def paths(self, paths: Iterable[str]) -> list[str]:
        """Return paths as they are read. Raise UsageError where one leads out."""
        return [self.path(path) for path in paths]

    def model(self, model: str | None) -> str | None:
        """Return a model: a name as it is, a file or folder as it is read. Raise UsageError where it is a path that leads out."""
        if model is None:
            return None
        inside = self.path(model)
        return inside if os.path.exists(inside) else model


def open_roots(folders: Iterable[str]) -> Roots:
    """Return the folders with their links resolved; nothing else is opened from now on, and the first is the working directory.

    Raise UsageError where one is none.
    """
    real = tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders)) or (os.path.realpath(os.curdir),)
    if missing := next((folder for folder in real if not os.path.isdir(folder)), None):
        raise UsageError(f"--root {missing}: no such folder")
    os.chdir(real[0])
    confine(real)
    return Roots(real)
