"""Which processes of a run the recorder did not reach, and what kept it out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress

from oomdoctor.record.evidence import EvidenceGap, WatchedProcess
from oomdoctor.record.evidence_place import RANKS

_HELLO = re.compile(r"pid-(\d{1,10})\.hello\.json$")
_PYTHON = re.compile(r"^(?:\S{0,400}/)?(?:python|pypy)[\d.]{0,6}(?: |$)")
_A_FRAMEWORK = 150 << 20
"""What a process holds at least that imported torch, jax or tensorflow; torch 2.13 for CPUs alone takes above 200 MiB."""
_MOST_GAPS = 16
_UNKNOWN = "it did not inherit the environment, or it imports no framework"


def unreached(folder: str | None, processes: Iterable[WatchedProcess]) -> list[EvidenceGap]:
    """Return a gap for each process of Python that is large enough to hold a framework and where no recorder said that it is there.

    Where others said so, one that has no rank and may not be kept out is taken for a tool that imports no framework.
    """
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(os.path.join(folder or "", RANKS))
    greeted = {int(hello[1]) for name in names if (hello := _HELLO.search(name))}
    commands = {process.pid: process.command for process in processes}
    return [
        EvidenceGap(what=f"the recorder in process {process.pid} ({process.command[:80]})", why=_kept_out(process.command) or _UNKNOWN)
        for process in processes
        if process.pid not in greeted
        and _PYTHON.search(process.command)
        and (process.peak_rss_bytes or 0) >= _A_FRAMEWORK
        and (not greeted or process.rank is not None or _kept_out(process.command))
        and not (process.parent in greeted and commands.get(process.parent or 0) == process.command)  # forked: it had nothing to say
    ][:_MOST_GAPS]


def _kept_out(command: str) -> str | None:
    """Return what kept the recorder out, by the options of the interpreter."""
    for word in command.split()[1:]:
        if not word.startswith("-") or word in ("-c", "-m", "-"):
            break
        if not word.startswith("--") and set(word) & set("IES"):
            return f"python {word} does not search the recorder's path"
    return None
