"""Processes parts in several processes on this machine."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread

from oomdoctor.errors import UsageError
from oomdoctor.triage.engines import part_work
from oomdoctor.triage.engines.part_work import Finished, PartWorker, Task, finish
from oomdoctor.triage.store.lock import share

_START = "spawn" if sys.platform == "win32" else "forkserver"


def prepare(processes: int) -> None:
    """Load the code in the parent process while it lists the files, so that the worker processes share it."""
    if processes > 1 and _START == "forkserver":
        get_context(_START).set_forkserver_preload([part_work.__name__])
        forkserver.ensure_running()


def run(task: Task, parts: Sequence[int], processes: int) -> Iterator[Finished]:
    """Work on the parts in this many processes, and yield each when it is finished."""
    if processes <= 1 or len(parts) <= 1:
        worker = PartWorker(task)
        yield from map(worker.finish, parts)
        return
    left = dict.fromkeys(parts)
    for is_last in (False, True):
        try:
            for finished in _in_pool(task, list(left), processes):
                del left[finished.number]
                yield finished
        except BrokenProcessPool as why:
            # The system kills a process if memory runs short: the remaining parts are tried once more, one at a time.
            if is_last:
                raise UsageError("a reader process was killed twice; --jobs 1 uses less memory") from why
            processes = 1
            continue
        return


def _in_pool(task: Task, parts: Sequence[int], processes: int) -> Iterator[Finished]:
    pool = ProcessPoolExecutor(processes, mp_context=get_context(_START), initializer=_start, initargs=(task.lock,))
    try:
        for done in as_completed([pool.submit(finish, task, number) for number in parts]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _start(lock: str) -> None:
    """Prepare a pool process: it leaves Ctrl-C to the leading process so that it can finish its part, and ends when that one does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()
    if share(lock) is None:
        sys.exit(f"another triage is using {lock}")


def _end_with(leader: BaseProcess | None) -> None:
    """End when the leading process has ended for any reason: a part is written whole or not at all, so no cleanup is needed."""
    if leader is not None:
        leader.join()
        os._exit(1)
