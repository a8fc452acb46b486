"""What brings the recorder into the interpreters of a run: a folder on PYTHONPATH, made for the run and for nothing else.

It holds an entry point of `torch.backends`, which torch from 2.5 on calls at its import, and a sitecustomize for everything else. The
recorder's files are copied, as the run's interpreter may be another one, without oomdoctor. What is set in the environment stays beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from oomdoctor.record import injected
from oomdoctor.record.evidence_place import MOST_BYTES, RANKS, TENSORFLOW, can_be_moved, create, remove_tree

NAME = "oomdoctor-inside"
"""The folder; what lists environments leaves it out by this name."""
PACKAGE = "oomdoctor_inside"
SITECUSTOMIZE = "sitecustomize.py"
FILES = ("__init__.py", "counts.py", "devices.py", "failures.py", "guard.py", "phases.py", "place.py", "recorder.py", "stacks.py")
"""Of the package, without what starts it."""
_METADATA = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1\n"
_ENTRY_POINTS = f"[torch.backends]\noomdoctor = {PACKAGE}:from_entry_point\n"
SNAPSHOTS_MOST = MOST_BYTES * 4 // 5
"""What snapshots may take of the evidence folder."""


class Injection(NamedTuple):
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
        return {"TF_BFC_MEMORY_DUMP": os.path.join(ranks, TENSORFLOW), **({**ascend, "OOM_SNAPSHOT_PATH": ranks} if ascend else {})}


def discard(injection: Injection | None) -> None:
    """Delete the folder. A process that still runs could not import torch without it."""
    if injection is not None:
        remove_tree(os.path.dirname(injection.path) if injection.is_temporary else injection.path)


def inject(folder: str | None, level: int) -> Injection | None:
    """Make the folder, in the evidence folder or, where that can be no entry of a path or others may move it away, in a temporary one.

    None where there is no evidence folder, or nothing can be written there.
    """
    if folder is None:
        return None
    with suppress(OSError):
        os.makedirs(os.path.join(folder, RANKS), mode=0o700, exist_ok=True)
        is_temporary = os.pathsep in os.path.abspath(folder) or can_be_moved(folder)
        place = import_module("tempfile").mkdtemp(prefix=f"{NAME}-") if is_temporary else folder
        return _made(place, folder, level, is_temporary=is_temporary)
    return None


def _made(place: str, evidence: str, level: int, *, is_temporary: bool) -> Injection:
    """Make the folder anew and write the files; `evidence` is where the recorders write."""
    path, folder = os.path.join(os.path.abspath(place), NAME), os.path.abspath(evidence)
    texts = {
        f"{PACKAGE}/settings": os.fsencode(f"{SNAPSHOTS_MOST}\n{level}\n{folder}"),
        f"{PACKAGE}-1.dist-info/METADATA": _METADATA.encode(),
        f"{PACKAGE}-1.dist-info/entry_points.txt": _ENTRY_POINTS.encode(),
        SITECUSTOMIZE: _source(SITECUSTOMIZE),
        **{f"{PACKAGE}/{name}": _source(name) for name in FILES},
    }
    remove_tree(path)  # whatever is there: an interpreter runs what lies in it
    os.mkdir(path, 0o700)
    for name, data in texts.items():
        target = os.path.join(path, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        create(target, data)
    return Injection(path=path, folder=folder, level=level, is_temporary=is_temporary)


def _source(name: str) -> bytes:
    """Return a file of the recorder, also where the package lies in a zip."""
    path = os.path.join(os.path.dirname(injected.__file__), name)
    read = getattr(injected.__spec__.loader, "get_data", None)
    if read is not None:
        return bytes(read(path))
    with open(path, "rb") as file:
        return file.read()
