"""What watching costs: the start of a command, and samples of sixteen processes. `python bench/watching.py [PYTHON]`.

PYTHON should be one with an installed wheel: what starts in a checkout looks for its files in more places.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from oomdoctor.record.sampling.before import KernelBefore
from oomdoctor.record.sampling.processes import ProcessTree
from oomdoctor.record.sampling.sampler import Sampler

ROUNDS = 30
PROCESSES = 16
Costs = list[tuple[float, float]]
"""Milliseconds of the clock and of processors."""


def start_ms(python: str) -> tuple[Costs, Costs]:
    """Return what a start costs alone and watched, by turns, as others use the machine too."""
    plain = [python, "-c", "pass"]
    watched = [python, "-m", "oomdoctor", "run", "--", *plain]
    with tempfile.TemporaryDirectory() as place:
        rounds = [(_once(plain, place), _once(watched, place)) for _ in range(ROUNDS)]
    return [alone for alone, _ in rounds], [beside for _, beside in rounds]


def _once(words: list[str], place: str) -> tuple[float, float]:
    """Return the milliseconds that pass, and those of processors."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, cwd=place, check=True)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def told(alone: Costs, watched: Costs) -> str:
    """Return the least and the median of each, and what comes on top."""
    parts = []
    for name, column in (("wall", 0), ("processor", 1)):
        for kind, of in (("least", min), ("median", statistics.median)):
            bare, beside = (of(cost[column] for cost in costs) for costs in (alone, watched))
            parts.append(f"{name} {kind} {bare:.0f} ms alone, {beside:.0f} watched, {beside - bare:+.0f}")
    return "\n  ".join(["python -c pass", *parts])


def sample_ms() -> tuple[float, float]:
    """Return the time of a processor that a sample of sixteen processes takes: the median, and the mean with the looks at everything."""
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(PROCESSES)]
    try:
        sampler = Sampler(ProcessTree(os.getpid()), (os.getcwd(),), KernelBefore())
        times = []
        for _ in range(100):
            start = time.process_time()
            sampler.sample()
            times.append((time.process_time() - start) * 1000)
        return statistics.median(times), statistics.mean(times)
    finally:
        for child in children:
            child.kill()
            child.wait()


if __name__ == "__main__":
    print(told(*start_ms(sys.argv[1] if len(sys.argv) > 1 else sys.executable)))
    median, mean = sample_ms()
    print(f"a sample of {PROCESSES} processes: {median:.2f} ms of a processor (mean {mean:.2f}), at 1 Hz {median / 10:.3f} % of a core")
