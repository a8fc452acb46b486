"""Parts on the processes of this machine."""

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
    """Have the code loaded from which processes will start, while this one lists what there is to read; they then share it."""
    if processes > 1 and _START == "forkserver":
        get_context(_START).set_forkserver_preload([part_work.__name__])
        forkserver.ensure_running()


def run(task: Task, parts: Sequence[int], processes: int) -> Iterator[Finished]:
    """Work on the parts in so many processes, and yield each when it is finished."""
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
            # The system kills a process where memory runs short: the parts that are left are tried once more, one at a time.
            if is_last:
                raise UsageError("a process that reads logs was killed twice; --jobs 1 reads with less memory") from why
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
    """Make a process of the pool ready: a Ctrl-C is for the one that leads, so that this one ends its part; with that one it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()
    if share(lock) is None:
        sys.exit(f"another triage is at work with {lock}")


def _end_with(leader: BaseProcess | None) -> None:
    """End when the process that leads has ended, however: a part is written whole or not at all, so that nothing has to be put in order."""
    if leader is not None:
        leader.join()
        os._exit(1)
