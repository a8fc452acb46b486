"""What the plugin of pytest costs a suite of 300 trivial tests of 10 ms. `python bench/pytest_overhead.py [PYTHON] [ROUNDS]`.

PYTHON should be one with an installed wheel, and pytest: there the plugin is loaded by its entry point. The suite runs with it and without
(`-p no:oomdoctor`), by turns, as others use the machine too. Without the plugin its package is still looked at, as pytest marks what is
installed with an entry point; a third word names a Python without it, which shows what that takes.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = 300
_SUITE = """
import time, pytest
@pytest.mark.parametrize("number", range({tests}))
def test_trivial(number): time.sleep(0.01)
"""


def seconds(python: str, folder: str, options: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds that pass in a run of the suite, and those of processors."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(python: str, rounds: int, bare: str | None) -> None:
    kinds = {"with the plugin": (python, ()), "without": (python, ("-p", "no:oomdoctor"))}
    if bare is not None:
        kinds["not installed"] = (bare, ())
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_suite.py").write_text(_SUITE.format(tests=TESTS))
        for by, options in kinds.values():
            seconds(by, folder, options)
        runs = [{name: seconds(by, folder, options) for name, (by, options) in kinds.items()} for _ in range(rounds)]
    for column, clock in enumerate(("wall", "processor")):
        for kind, of in (("least", min), ("median", statistics.median)):
            times = {name: of(run[name][column] for run in runs) for name in kinds}
            told = ", ".join(f"{name} {time * 1000:.0f} ms" for name, time in times.items())
            whole = min(run["without"][0] for run in runs)
            share = {name: (times["with the plugin"] - times[name]) / whole for name in kinds if name != "with the plugin"}
            over = ", ".join(f"{100 * part:+.2f} % of the suite over {name}" for name, part in share.items())
            print(f"{clock}, {kind}: {told}; {over}")


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[0] if words else sys.executable, int(words[1]) if len(words) > 1 else 10, words[2] if len(words) > 2 else None)
