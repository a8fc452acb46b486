"""Parts on the processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from oomdoctor.triage.engines.part_work import Finished, PartWorker, Task, finish


def run(task: Task, parts: Sequence[int], processes: int) -> Iterator[Finished]:
    """Work on the parts in so many processes, and yield each when it is finished."""
    if processes <= 1 or len(parts) <= 1:
        worker = PartWorker(task)
        yield from map(worker.finish, parts)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as pool:
        waiting = [pool.submit(finish, task, number) for number in parts]
        for done in as_completed(waiting):
            yield done.result()
