"""Processes parts on the nodes of a running Ray cluster: one task each, retried if its process or node dies.

Each node has this version of oomdoctor, and sees the store and the logs under the same names: on a shared file system, logs in an
object store too. What is running and not finished is lost with the driver: a second run goes on from the parts that are whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.errors import UsageError
from oomdoctor.extras import load_extra
from oomdoctor.triage.engines.part_work import Finished, Task, finish

_RUNNING = "auto"
"""Ray's name for the cluster given by RAY_ADDRESS or running on this machine."""
_TRIES_AGAIN = 5


def run(task: Task, parts: Sequence[int], address: str | None = None) -> Iterator[Finished]:
    """Work on the parts as tasks of the cluster at an address, and yield each when it is finished.

    Raise UsageError where no cluster is there, or its nodes cannot do this work.
    """
    ray = load_extra("ray", "ray", "--engine ray")
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            ray.init(address=address or _RUNNING, log_to_driver=False, logging_level="warning")
        except (ConnectionError, ValueError, RuntimeError) as why:
            raise UsageError(f"no Ray cluster at {address or 'RAY_ADDRESS or on this machine'}: {str(why).splitlines()[0]}") from why
    try:
        remote = ray.remote(finish).options(num_cpus=1, max_retries=_TRIES_AGAIN)
        waiting = {remote.remote(task, number): number for number in parts}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            number = waiting.pop(done)
            try:
                yield ray.get(done)
            except ray.exceptions.RayTaskError as why:
                raise UsageError(f"Ray could not complete the work: {str(why).strip().splitlines()[-1]}") from why
            except ray.exceptions.RayError as why:
                yield Finished(number, 0, 0, 0, problem=str(why).strip().splitlines()[0])
    finally:
        if is_ours:
            ray.shutdown()
