"""Watch this process from inside: as a block, or in a notebook."""

from __future__ import annotations

from typing import Any

from oomdoctor import __version__
from oomdoctor.record.here import ProcessWatch

_NOTEBOOKS: list[ProcessWatch] = []
"""The one in this process; loading the extension again changes nothing."""


def watch(out: str | None = None, *, level: int = 1) -> ProcessWatch:
    """Record the memory of this process while a block runs, for `oomdoctor diagnose FOLDER`.

    `out` is the evidence folder, by default a new one in the working directory; `level` is 0 for counters, 1 for what is holding memory, 2
    for history. Import torch before the block. Under `oomdoctor run` the folder of that run is used.

    >>> import oomdoctor, os, tempfile
    >>> with tempfile.TemporaryDirectory() as place, oomdoctor.watch(place, level=0) as watched:
    ...     watched.phase("training")
    ...     os.path.samefile(place, watched.folder or "")
    True
    """
    return ProcessWatch(out, level, __version__)


def load_ipython_extension(shell: Any) -> None:
    """Record in a notebook: `%load_ext oomdoctor`. A failing cell is recorded, since notebooks catch what cells raise."""
    if _NOTEBOOKS:
        return
    watched = watch()
    watched.start()
    _NOTEBOOKS.append(watched)

    def after_cell(result: Any) -> None:
        watched.start()  # a library that this cell imported
        error = getattr(result, "error_in_exec", None)
        if isinstance(error, Exception):
            watched.failed(type(error), error, error.__traceback__)

    shell.events.register("post_run_cell", after_cell)
