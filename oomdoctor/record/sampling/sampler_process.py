"""The sampler as a process beside the command, from the wrapper's side."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib import import_module

from msgspec import DecodeError, Struct
from msgspec.json import decode

from oomdoctor.record.command.beside import Beside
from oomdoctor.record.evidence import CgroupCounters, EvidenceGap, FileSystem, Survivor, WatchedProcess
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.sampling.before import KernelBefore

_MOST_SUMMARY = 32 << 20


class Summary(Struct, frozen=True, kw_only=True):
    """What the sampler saw from start to end."""

    processes: tuple[WatchedProcess, ...] = ()
    alive: tuple[Survivor, ...] = ()
    counters: CgroupCounters | None = None
    host_oom_kills: int | None = None
    has_machine_pids: bool = False
    files: tuple[FileSystem, ...] = ()
    kernel: tuple[str, ...] = ()
    gaps: tuple[EvidenceGap, ...] = ()
    near: str | None = None
    """What was used to within three hundredths: card or group."""


class SamplerProcess:
    """The process, from the wrapper's side."""

    def __init__(
        self,
        folder: EvidenceFolder,
        ours: Collection[int],
        places: tuple[str, ...],
        before: KernelBefore,
        once: Collection[Callable[[], object]] = (),
    ) -> None:
        """Start it; `once` is what it does besides, after a while and in a thread, as it may take time."""
        question, self._ask = os.pipe()
        self._beside = Beside(partial(_live, question, self._ask, folder, frozenset(ours), places, before, tuple(once)))
        self.pid = self._beside.pid
        os.close(question)

    def finish(self, seconds: float) -> Summary:
        """Ask for what it saw and end it; after so many seconds go on without."""
        os.close(self._ask)
        until, data = time.monotonic() + seconds, b""
        while self.pid is not None and len(data) < _MOST_SUMMARY:
            if not select.select([self._beside.reader], [], [], max(0.0, until - time.monotonic()))[0]:
                break
            piece = os.read(self._beside.reader, 1 << 16)
            if not piece:
                break
            data += piece
        self._beside.kill()
        with suppress(DecodeError):
            return decode(data, type=Summary)
        return Summary(gaps=(EvidenceGap(what="the processes of the run", why="the sampler did not respond"),))


def _live(*given: object) -> None:
    """Sample, in the process of its own: what that takes is loaded there, while the wrapper goes on."""
    import_module("oomdoctor.record.sampling.sampler").sample_until_asked(*given)
