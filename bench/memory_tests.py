"""Tests with planted regressions and leaks, and steady ones, for the plugin of pytest. `python bench/memory_tests.py [REPEATS]`.

The tests run on the simulated card of simulated_torch.py, each repeat in a random order of its own. Prints how often a planted
one is missed, and how often a steady one fails, in so many repeats (default 300).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Planted(NamedTuple):
    """A test: its body as it was when the peaks were kept, or nothing where it is new, and as it is now."""

    name: str
    before: str
    now: str
    mark: str = ""


_LEAK = "@pytest.mark.gpu_memory_leak"


def _leak(name: str, body: str, mark: str = _LEAK) -> Planted:
    return Planted(name, body, body, mark)


def _limit(name: str, limit: str, body: str) -> Planted:
    return Planted(name, "", body, f"@pytest.mark.gpu_memory({limit})")


PLANTED = (
    Planted("a larger tensor", "mib(200)", "mib(240)"),
    Planted("a tenth more of a gigabyte", "mib(1024)", "mib(1127)"),
    Planted("a copy beside the tensor", "a = mib(50)", "a = mib(50); b = mib(50)"),
    Planted("two temporaries at once, one after the other before", "mib(60); mib(60)", "both = (mib(60), mib(60))"),
    Planted("a list that is kept during the loop", "for n in range(9): mib(20)", "all_ = [mib(20) for n in range(9)]"),
    Planted("many small tensors", "x = [mib(1 / 16) for n in range(500)]", "x = [mib(1 / 16) for n in range(1100)]"),
    Planted("a peak that is over before the test ends", "mib(100)", "mib(100)\nx = mib(180)\ndel x\nmib(1)"),
    Planted("cycles that wait for the collector", "for n in range(8): mib(20)", "for n in range(8):\n    c = [mib(20)]; c.append(c)"),
    Planted("a peak in an exception that is handled", "mib(40)", "try:\n    x = mib(90); raise ValueError\nexcept ValueError: del x"),
    Planted("a test that used no device before it grew", "a = mib(1)", "a = mib(64)"),
    Planted("a generator that holds its last", "for x in (mib(30) for n in range(4)): del x", "x = list(mib(30) for n in range(4))"),
    Planted("a cache that came into being in the test", "mib(80)", "cache = {n: mib(40) for n in range(3)}"),
    Planted("twice the batch", "a = mib(300); b = mib(300)", "a = mib(600); b = mib(600)"),
    Planted("a fifth more, marked with a tolerance of ten percent", "mib(20)", "mib(24)", "@pytest.mark.gpu_memory(tolerance='10%')"),
    _limit("a tensor above the limit", "'64 MiB'", "mib(65)"),
    _limit("a block above the limit", "64 << 20", "a = mib(64); b = mib(1 / 2048)"),
    _limit("a sum above the limit", "limit='100 MiB'", "x = [mib(11) for n in range(10)]"),
    _limit("a temporary above the limit", "limit='100 MiB'", "x = mib(90)\nmib(20)\ndel x"),
    _limit("a limit of nothing", "0", "mib(1)"),
    _limit("above a limit in a function", "'10 MiB'", "def inner(): return mib(11)\ninner()"),
    _limit("above a limit of the process", "'150 MiB', of='process'", "SESSION.setdefault('x', mib(100)); mib(60)"),
    _limit("above a limit in a cycle", "'30 MiB'", "c = [mib(31)]; c.append(c)"),
    _limit("above a limit behind a reserved block", "'30 MiB'", "mib(20); x = mib(20); y = mib(20)"),
    _limit("a limit in gibibytes", "'0.5 GiB'", "mib(513)"),
    _leak("a list of the module", "KEPT.append(mib(1))"),
    _leak("the smallest block", "KEPT.append(mib(1 / 2048))"),
    _leak("a dictionary by number", "CACHE[len(CACHE)] = mib(2)"),
    _leak("every second run", "count('second') % 2 or KEPT.append(mib(1))"),
    _leak("every third run", "count('third') % 3 or KEPT.append(mib(1))"),
    _leak("more each time", "KEPT.append(mib(count('more')))"),
    _leak("an attribute of a class", "class_of('a').held = [*getattr(class_of('a'), 'held', ()), mib(1)]"),
    _leak("an exception that is kept", "try:\n    x = mib(1); raise ValueError\nexcept ValueError as error: KEPT.append(error)"),
    _leak(
        "a generator that waits", "def lines():\n    x = mib(1)\n    yield 1\n    yield x\nwaits = lines(); next(waits); KEPT.append(waits)"
    ),
    _leak("a callback that is registered", "x = mib(1)\nHOOKS.append(lambda: x)"),
    _leak("a cycle that something holds", "c = [mib(1)]; c.append(c); KEPT.append(c)"),
    _leak("behind a cache that filled", "SESSION.setdefault('full', mib(50)); KEPT.append(mib(1))"),
    _leak("beside garbage", "c = [mib(random.randint(1, 9))]; c.append(c); KEPT.append(mib(1))"),
    _leak("beside a buffer that is replaced", "SESSION['now'] = mib(8); KEPT.append(mib(2))"),
    _leak("more than is allowed", "KEPT.append(mib(3))", "@pytest.mark.gpu_memory_leak(allowed='2 MiB')"),
    _leak("few repeats", "KEPT.append(mib(1))", "@pytest.mark.gpu_memory_leak(repeats=3)"),
)
_NOISE = "x = mib(100 + random.random())"
STEADY = (
    Planted("nothing", "pass", "pass"),
    Planted("the same tensor", "mib(200)", "mib(200)"),
    Planted("a tenth less", "mib(1024)", "mib(930)"),
    Planted("noise of a percent", _NOISE, _NOISE),
    Planted("a workspace of 32 MiB that somebody took first", "mib(20)", "mib(52)"),
    Planted("three percent of four gigabytes", "mib(4096)", "mib(4200)"),
    Planted("temporaries in another order", "mib(60); mib(20)", "mib(20); mib(60)"),
    Planted("garbage of a test before", "garbage(200); mib(90)", "garbage(200); mib(90)"),
    Planted("a buffer of the session, larger now", "SESSION.setdefault('b', mib(40))", "SESSION.setdefault('b', mib(44))"),
    Planted("a device that is used no more", "mib(40)", "pass"),
    Planted("a test without a kept peak", "", "mib(200)"),
    Planted("other sizes below the slack", "[mib(1) for n in range(20)]", "[mib(1) for n in range(40)]"),
    Planted("a tenth more, marked with a tolerance", "mib(500)", "mib(550)", "@pytest.mark.gpu_memory(tolerance=0.2)"),
    Planted("a failure that is handled", "try: mib(9000)\nexcept RuntimeError: pass", "try: mib(9000)\nexcept RuntimeError: pass"),
    _limit("at the limit", "'64 MiB'", "mib(64)"),
    _limit("rounded to the limit", "'64 MiB'", "a = mib(63.9999)"),
    _limit("below the limit with what was there", "'30 MiB'", "SESSION.setdefault('large', mib(25)); mib(4)"),
    _limit("one after the other", "'30 MiB'", "for n in range(20): mib(29)"),
    _limit("reserved beyond the limit", "'12 MiB'", "mib(11)"),
    _limit("below a limit of the process", "'4 GiB', of='process'", "mib(100)"),
    _limit("no device", "0", "pass"),
    _leak("a temporary", "mib(50)"),
    _leak("no device at all", "pass"),
    _leak("a cycle for the collector", "c = [mib(5)]; c.append(c)"),
    _leak("a cache that fills with the first run", "SESSION.setdefault('cache', mib(70))"),
    _leak("a cache that fills with three runs", "CACHES['three'].setdefault(min(count('three'), 3), mib(5))"),
    _leak("a cache that fills late", "CACHES['late'].setdefault(min(count('late'), 6), mib(5))"),
    _leak("a buffer that is replaced", "SESSION['buffer'] = mib(9)"),
    _leak("a buffer of another size each time", "SESSION['other'] = mib(random.randint(60, 90))"),
    _leak("two buffers by turns", "SESSION['turns', count('turns') % 2] = mib(3 + count('turns') % 2)"),
    _leak("held every second run", "SESSION['every'] = mib(4) if count('every') % 2 else None"),
    _leak("the last four", "RINGS['four'].append(mib(2))"),
    _leak("a ring of several sizes", "RINGS['sizes'].append(mib(random.randint(1, 30)))"),
    _leak("an exception that is dropped", "try:\n    x = mib(1); raise ValueError\nexcept ValueError: pass"),
    _leak("a generator that ends", "list(mib(1) for n in range(3))"),
    _leak("shrinking", "SESSION['shrinks'] = mib(max(1, 100 - count('shrinks')))"),
    _leak("grown once, in the fourth run", "count('once') == 4 and KEPT.append(mib(9))"),
    _leak("as much as is allowed", "KEPT.append(mib(1))", "@pytest.mark.gpu_memory_leak(allowed='1 MiB')"),
    _leak("held until the next run", "KEPT2[:] = [mib(random.randint(5, 9))]"),
    _leak("a thousand small ones", "x = [mib(1 / 100) for n in range(200)]"),
)
_HEAD = """
import gc, random, torch, pytest
from collections import Counter, defaultdict, deque
mib = torch.mib
KEPT, KEPT2, CACHE, HOOKS, SESSION, RUNS = [], [], {}, [], {}, Counter()
CACHES, RINGS = defaultdict(dict), defaultdict(lambda: deque(maxlen=4))
class A: pass
def class_of(name): return A
def count(name):
    RUNS[name] += 1
    return RUNS[name]
def start(seed):
    for state in (KEPT, KEPT2, CACHE, HOOKS, SESSION, RUNS, CACHES, RINGS):
        state.clear()
    A.held = ()
    gc.collect()
    gc.freeze()  # the reports of the rounds before need not be looked at each time
    random.seed(seed)
    if seed % 2:
        mib(1)  # the device was started before
def garbage(size):
    cycle = [mib(size)]
    cycle.append(cycle)
"""
_CONFTEST = """
import gc, os, random, sys
sys.path[:0] = {paths!r}
from simulated_torch import simulated_torch
sys.modules["torch"] = simulated_torch(16 << 30)
ROUND = []
def pytest_collection_modifyitems(items):
    ROUND[:] = items
    for seed in range(int(os.environ["REPEATS"])):
        random.seed(seed)
        items += random.sample(ROUND, len(ROUND))
    del items[:len(ROUND)]
def pytest_runtest_protocol(item, count=[0]):
    if count[0] % len(ROUND) == 0:  # a new round: everything is as it was at the start
        item.module.start(count[0] // len(ROUND))
    count[0] += 1
    item._initrequest()
"""


def name_of(test: Planted) -> str:
    """Return the name of the function."""
    return "test_" + re.sub(r"\W+", "_", test.name)


def module_text(tests: tuple[Planted, ...], *, now: bool) -> str:
    """Return the tests as a module, as they were or as they are."""
    parts = []
    for test in tests if now else [test for test in tests if test.before]:
        body = "".join(f"    {line}\n" for line in (test.now if now else test.before).split("\n"))
        mark = test.mark if now or "leak" not in test.mark else ""
        parts.append(f"{mark}\ndef {name_of(test)}():\n{body}")
    return _HEAD + "\n".join(parts)


def run_tests(folder: Path, tests: tuple[Planted, ...], *, now: bool, repeats: int = 1) -> list[tuple[str, str]]:
    """Run the tests against the kept peaks, or keep them; return name and outcome of each run."""
    (folder / "conftest.py").write_text(_CONFTEST.format(paths=[str(ROOT), str(ROOT / "bench")]))
    (folder / "test_memory.py").write_text(module_text(tests, now=now))
    words = ["-p", "oomdoctor.pytest_plugin", "-p", "no:cacheprovider", "-vv", "--tb=no", "-rN", "--gpu-memory-baseline", "peaks.json"]
    kept = () if now else ("--gpu-memory-write",)
    environ = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "REPEATS": str(repeats), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "pytest", *words, *kept]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    ended = re.findall(r"^test_memory\.py::(\w+) (PASSED|FAILED|ERROR)", done.stdout, re.MULTILINE)
    if len(ended) < repeats * sum(now or bool(test.before) for test in tests):
        raise RuntimeError(done.stdout[-4000:] + done.stderr[-2000:])
    return ended


def main(repeats: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        run_tests(Path(place), PLANTED + STEADY, now=False)
        ended = run_tests(Path(place), PLANTED + STEADY, now=True, repeats=repeats)
    planted, steady = ({name_of(test) for test in tests} for tests in (PLANTED, STEADY))
    missed = [name for name, outcome in ended if name in planted and outcome != "FAILED"]
    wrong = [name for name, outcome in ended if name in steady and outcome != "PASSED"]
    print(
        f"planted regressions and leaks: {len(PLANTED)}, in {repeats} repeats missed {len(missed)} times", *sorted(set(missed)), sep="\n  "
    )
    print(f"steady tests: {len(STEADY)}, in {repeats} repeats failed {len(wrong)} times", *sorted(set(wrong)), sep="\n  ")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
