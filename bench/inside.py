"""What the recorder inside costs: start-up, an allocation, a failure. Run as `python bench/inside.py`; needs no card.

An allocation is one and its end, of the allocator of fake_card.py, whose own cost is what it takes without the recorder; torch itself
takes about 2 us to record a stack, which are not in it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

ALLOCATIONS = """
import sys, time
sys.path.append({site!r})
import torch
torch.cuda.init()
torch._C.HISTORY[0] = None
best = 9.0
for _ in range(3):
    began = time.perf_counter()
    for _ in range(1_000_000):
        torch._C.free(torch._C.allocate(512))
    best = min(best, time.perf_counter() - began)
print(best)
"""
FAILURE = """
import sys, time
sys.path.append({site!r})
import torch
torch.cuda.init()
for number in range({blocks}):
    torch._C.allocate(512).frames = [dict(filename="/home/a/train.py", line=number % 97, name="step")] * 20
began = time.perf_counter()
seen = []
dump = torch.cuda.memory._snapshot
torch.cuda.memory._snapshot = lambda: seen.append(time.perf_counter() - began) or dump()
try:
    torch._C.allocate(2 << 30)
except RuntimeError:
    print(seen[0], time.perf_counter() - began)
"""


def main() -> None:
    from fake_torch import write_fake_torch

    from oomdoctor.record.injection import inject

    python = str(getattr(sys, "_base_executable", sys.executable))
    with tempfile.TemporaryDirectory() as place:
        bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        levels = [inject(os.path.join(place, f"evidence-{level}"), level) for level in (0, 1)]
        counted, given = (injection.environment(bare) for injection in levels if injection is not None)
        site = str(write_fake_torch(Path(place) / "site-packages", "2.13.0"))

        starts: dict[str, list[float]] = {"bare": [], "with": []}
        for _ in range(60):
            for name, environment in (("bare", bare), ("with", given)):
                began = time.perf_counter()
                subprocess.run([python, "-c", "pass"], env=environment, check=True)
                starts[name].append((time.perf_counter() - began) * 1e3)
        medians = {name: statistics.median(values) for name, values in starts.items()}
        added = medians["with"] - medians["bare"]
        print(f"python -c pass: {medians['bare']:.1f} ms, {added:+.2f} ms with the recorder")

        def run(program: str, environment: dict[str, str]) -> list[float]:
            done = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=True)
            return [float(word) for word in done.stdout.split()]

        runs = [[run(ALLOCATIONS.format(site=site), environment)[0] for environment in (bare, counted, given)] for _ in range(3)]
        alone, at_0, at_1 = (min(of_each) for of_each in zip(*runs))
        print(f"an allocation: {alone:.3f} us of the fake allocator alone, {at_0 - alone:+.3f} at level 0, {at_1 - alone:+.3f} at level 1")
        first, whole = run(FAILURE.format(site=site, blocks=100_000), given)
        print(f"a failure with 100,000 live blocks: first JSON after {first * 1e3:.1f} ms, all after {whole:.2f} s")


if __name__ == "__main__":
    main()
