"""What brings the recorder into the interpreters of a run: a folder on PYTHONPATH, made for the run and for nothing else.

It holds an entry point of `torch.backends`, which torch from 2.5 on calls at its import, and a sitecustomize for everything else. The
recorder's files are copied, as the run's interpreter may be another one, without oomdoctor. What is set in the environment stays beside it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec import Struct

from oomdoctor.record import injected
from oomdoctor.record.evidence import MOST_BYTES, RANKS, EvidenceGap, WatchedProcess

NAME = "oomdoctor-inside"
"""The folder; what lists environments leaves it out by this name."""
PACKAGE = "oomdoctor_inside"
SITECUSTOMIZE = "sitecustomize.py"
FILES = ("__init__.py", "counts.py", "devices.py", "failures.py", "guard.py", "place.py", "recorder.py", "stacks.py")
"""Of the package, without what starts it."""
_METADATA = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1\n"
_ENTRY_POINTS = f"[torch.backends]\noomdoctor = {PACKAGE}:from_entry_point\n"
SNAPSHOTS_MOST = MOST_BYTES * 4 // 5
"""What snapshots may take of the evidence folder."""
_HELLO = re.compile(r"pid-(\d{1,10})\.hello\.json$")
_PYTHON = re.compile(r"^(?:\S{0,400}/)?(?:python|pypy)[\d.]{0,6}(?: |$)")
_A_FRAMEWORK = 150 << 20
"""What a process holds at least that imported torch, jax or tensorflow; torch 2.13 for CPUs alone takes above 200 MiB."""
_MOST_GAPS = 16
_UNKNOWN = "its environment did not reach it, or it imports no framework"


class Injection(Struct, frozen=True, kw_only=True):
    """A folder that is ready to be on PYTHONPATH, and where the recorders write."""

    path: str
    folder: str
    level: int
    is_temporary: bool

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with which every Python that heeds it records."""
        before = environment.get("PYTHONPATH")
        return {
            **environment,
            **{name: value for name, value in self._of_other_programs().items() if name not in environment},
            # An empty entry is the working directory; a variable that is empty as a whole is none.
            "PYTHONPATH": f"{self.path}{os.pathsep}{before}" if before else self.path,
        }

    def _of_other_programs(self) -> dict[str, str]:
        """Return what programs need that write such files themselves.

        torch_npu: csrc/core/npu/register/OptionsManager.cpp; TensorFlow: core/common_runtime/bfc_allocator.cc, MaybeWriteMemoryMap.
        """
        ranks = os.path.join(self.folder, RANKS)
        ascend = {1: {"OOM_SNAPSHOT_ENABLE": "2"}, 2: {"OOM_SNAPSHOT_ENABLE": "1"}}.get(self.level)
        return {"TF_BFC_MEMORY_DUMP": os.path.join(ranks, "tensorflow"), **({**ascend, "OOM_SNAPSHOT_PATH": ranks} if ascend else {})}


def discard(injection: Injection | None) -> None:
    """Delete the folder. A process that still runs could not import torch without it."""
    if injection is not None:
        shutil.rmtree(os.path.dirname(injection.path) if injection.is_temporary else injection.path, ignore_errors=True)


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
            return f"python {word} does not look where the recorder is"
    return None


def inject(folder: str | None, level: int) -> Injection | None:
    """Make the folder, in the evidence folder or, where that can be no entry of a path, in a temporary one.

    None where there is no evidence folder, or nothing can be written there.
    """
    if folder is None:
        return None
    with suppress(OSError):
        os.makedirs(os.path.join(folder, RANKS), mode=0o700, exist_ok=True)
        is_temporary = os.pathsep in os.path.abspath(folder)
        return _made(tempfile.mkdtemp(prefix=f"{NAME}-") if is_temporary else folder, folder, level, is_temporary=is_temporary)
    return None


def _made(place: str, evidence: str, level: int, *, is_temporary: bool) -> Injection:
    """Write the files, whole; `evidence` is where the recorders write."""
    path, folder = os.path.join(os.path.abspath(place), NAME), os.path.abspath(evidence)
    settings = json.dumps({"folder": folder, "level": level, "most": SNAPSHOTS_MOST})
    texts = {
        f"{PACKAGE}/settings.json": settings.encode(),
        f"{PACKAGE}-1.dist-info/METADATA": _METADATA.encode(),
        f"{PACKAGE}-1.dist-info/entry_points.txt": _ENTRY_POINTS.encode(),
        SITECUSTOMIZE: _source(SITECUSTOMIZE),
        **{f"{PACKAGE}/{name}": _source(name) for name in FILES},
    }
    for name, data in texts.items():
        target = os.path.join(path, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(f"{target}.part", "wb") as file:
            file.write(data)
        os.replace(f"{target}.part", target)
    return Injection(path=path, folder=folder, level=level, is_temporary=is_temporary)


def _source(name: str) -> bytes:
    """Return a file of the recorder, also where the package lies in a zip."""
    path = os.path.join(os.path.dirname(injected.__file__), name)
    read = getattr(injected.__spec__.loader, "get_data", None)
    if read is not None:
        return bytes(read(path))
    with open(path, "rb") as file:
        return file.read()
