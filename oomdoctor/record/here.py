"""The recorder inside without a wrapper: in the process that runs, or in those that somebody else starts."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from oomdoctor.record.evidence import RUN, EvidenceGap, RunRecord, WatchedProcess
from oomdoctor.record.evidence_place import EvidencePlace, NotOurs, make_place
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.injected import recorder as own_recorder
from oomdoctor.record.injection import PACKAGE, SNAPSHOTS_MOST, Injection, inject

LIBRARIES = ("torch", "torch_npu", "torch_musa", "torch_mlu", "jax", "tensorflow")
NO_WRAPPER = EvidenceGap(
    what="the wrapper", why="the recorder was started inside the process, without the wrapper", how="oomdoctor run -- COMMAND"
)


def prepare(out: str | None, level: int, version: str) -> Injection | None:
    """Make an evidence folder for commands that somebody else starts, with the recorder in it; None where nothing can be written."""
    folder = EvidenceFolder(make_place(out))
    injection = inject(folder.path, level)
    if injection is None:
        folder.remove()
        return None
    folder.write_json(RUN, RunRecord(oomdoctor=version, cwd=os.getcwd(), start=round(time.time(), 3), level=level, gaps=(NO_WRAPPER,)))
    return injection


def _place(out: str | None) -> EvidencePlace:
    """Make the folder of a block; what must not be used is a gap, as no error of ours may reach the program."""
    try:
        return make_place(out)
    except NotOurs as why:
        return EvidencePlace(None, is_new=True, failed=((out or "", str(why)),))


class ProcessWatch:
    """What is recorded of this process while a block runs: `with oomdoctor.watch() as watched:`."""

    def __init__(self, out: str | None, level: int, version: str, *, begins: bool = True) -> None:
        """Prepare it. Without `begins` only a recorder that is there already is told, and where there is none nothing is written."""
        self._record = RunRecord(
            oomdoctor=version, command=tuple(sys.argv), cwd=os.getcwd(), start=round(time.time(), 3), level=level, gaps=(NO_WRAPPER,)
        )
        self._folder: EvidenceFolder | None = None
        self._out, self._begins = out, begins
        self._recorder: Any = None

    @property
    def folder(self) -> str | None:
        """The evidence folder; None where nothing can be written."""
        return self._recorder.folder if self._recorder is not None else None

    def start(self) -> None:
        """Begin to record; a recorder that `oomdoctor run` brought goes on instead."""
        there = sys.modules.get(f"{PACKAGE}.recorder")
        self._recorder = getattr(there, "RECORDER", None) or own_recorder.RECORDER
        if self._recorder is None and self._begins:
            self._recorder = self._new_recorder()
        for library in LIBRARIES:
            if self._recorder is not None and library in sys.modules and library not in self._recorder.libraries:
                self._recorder.hang_on(library)
        if self._recorder is not None:
            self._recorder.say_hello()

    def _new_recorder(self) -> Any:
        self._folder = EvidenceFolder(_place(self._out))
        if self._folder.path is None:
            return None
        self._folder.write_json(RUN, self._record)
        own_recorder.RECORDER = own_recorder.begin(self._folder.path, self._record.level, SNAPSHOTS_MOST, "watch")
        return own_recorder.RECORDER

    def phase(self, name: str | None) -> None:
        """Say what the program does from here on, by a name of record/observations/over_time.py, or None where it is none of them."""
        if self._recorder is not None:
            self._recorder.enter(name)

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Say what the program does in a block, and then that it goes on with what it did before."""
        before = self._recorder.phase if self._recorder is not None else None
        self.phase(name)
        try:
            yield
        finally:
            self.phase(before)

    def step(self, number: int) -> None:
        """Say how many steps are done."""
        if self._recorder is not None:
            self._recorder.step = number

    def failed(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Write down an exception that ends the block, or the cell of a notebook."""
        if self._recorder is not None:
            self._recorder.died_of(kind, error, trace, None)

    def __enter__(self) -> ProcessWatch:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None and error is not None:
            self.failed(kind, error, trace)
        self.stop(0 if error is None else 1)

    def stop(self, status: int = 0) -> None:
        """End what was started here, with an exit status."""
        if self._folder is not None:
            own_recorder.close()
            now = round(time.time(), 3)
            process = WatchedProcess(pid=os.getpid(), command=" ".join(sys.argv), start=self._record.start, end=now, exit_code=status)
            self._folder.write_json(RUN, replace(self._record, end=now, exit_code=status, processes=(process,)))
