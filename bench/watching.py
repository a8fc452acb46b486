"""What watching costs: the start of a command, and samples of sixteen processes. `python bench/watching.py`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from oomdoctor.record.sampling.processes import ProcessTree
from oomdoctor.record.sampling.sampler import Sampler

ROUNDS = 25
PROCESSES = 16


def start_ms() -> tuple[float, float]:
    """Return how long a start takes alone and watched: the least of some, as others use the machine too."""
    with tempfile.TemporaryDirectory() as place:
        plain = [sys.executable, "-c", "pass"]
        watched = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--level", "0", "--", *plain]
        return _least(plain, place), _least(watched, place)


def _least(words: list[str], place: str) -> float:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run(words, cwd=place, check=True)
        return (time.perf_counter() - start) * 1000

    return min(once() for _ in range(ROUNDS))


def sample_ms() -> tuple[float, float]:
    """Return the time of a processor that a sample of sixteen processes takes: the median, and the mean with the looks at everything."""
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(PROCESSES)]
    try:
        sampler = Sampler(ProcessTree(os.getpid()), (os.getcwd(),))
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
    alone, watched = start_ms()
    print(f"python -c pass: {alone:.0f} ms alone, {watched:.0f} ms watched, +{watched - alone:.0f} ms")
    median, mean = sample_ms()
    print(f"a sample of {PROCESSES} processes: {median:.2f} ms of a processor (mean {mean:.2f}), at 1 Hz {median / 10:.3f} % of a core")
