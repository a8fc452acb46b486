"""Parts on the processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from oomdoctor.triage.engines.part_work import Finished, PartWorker, Task

_worker: PartWorker | None = None
"""That of this process, where it is one of a pool."""


def run(task: Task, parts: Sequence[int], processes: int) -> Iterator[Finished]:
    """Work on the parts in so many processes, and yield each when it is finished."""
    if processes <= 1 or len(parts) <= 1:
        worker = PartWorker(task)
        yield from map(worker.finish, parts)
        return
    context = get_context("forkserver")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(task,)) as pool:
        waiting = [pool.submit(_finish, number) for number in parts]
        for done in as_completed(waiting):
            yield done.result()


def _start(task: Task) -> None:
    global _worker  # noqa: PLW0603 - a process of a pool has nothing else to keep it in
    _worker = PartWorker(task)


def _finish(number: int) -> Finished:
    assert _worker is not None  # noqa: S101 - the pool starts each process with _start
    return _worker.finish(number)
