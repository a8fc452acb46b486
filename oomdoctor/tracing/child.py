"""Tracing in a process of its own: the code of a model can run for ever, take all memory, or end the process that runs it."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import oomdoctor
from oomdoctor.case.setup import Setup, TracedMemory
from oomdoctor.errors import Untraceable
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.simulation.simulated_run import Simulation

_SECONDS = 240
"""How long it may take in all. The operations that it counts have their own limits; this one is for code that runs none."""
_GIB = 1 << 30
_ROOM = 8 * _GIB
"""What it may take beyond the libraries that it loads: tensors without values take next to nothing."""
_NEEDED = ("torch", "transformers")
_LAST = 200
"""How many letters of what it said last are told."""


def trace(config: Mapping[str, Any], setup: Setup) -> TracedMemory:
    """Do what `trace.trace` does. Raise Untraceable too where the process that does it dies."""
    result = _called("trace", config, setup)
    assert isinstance(result, TracedMemory)  # noqa: S101 - what our own code returns
    return result


def simulate(config: Mapping[str, Any], setup: Setup, alloc_conf: str | None, card: Card | None) -> Simulation:
    """Do what `simulate.simulate` does. Raise Untraceable too where the process that does it dies."""
    result = _called("simulate", config, setup, alloc_conf, card)
    assert isinstance(result, Simulation)  # noqa: S101 - what our own code returns
    return result


def missing() -> str | None:
    """Return what is not installed of what it needs; None where nothing is missing."""
    return next((name for name in _NEEDED if find_spec(name) is None), None)


def _called(name: str, *arguments: object) -> object:
    home = Path(oomdoctor.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(home)!r}); from oomdoctor.tracing.child import main; main()"
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, with our own code
            [sys.executable, "-W", "ignore", "-c", code],
            input=pickle.dumps((name, arguments)),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Untraceable(f"its code ran for more than {_SECONDS} s and was stopped") from None
    if done.returncode:
        raise Untraceable(_death(done.returncode, done.stderr.decode(errors="replace")))
    given: object = pickle.loads(done.stdout)  # noqa: S301 - written by the process that was started here
    if isinstance(given, str):
        raise Untraceable(given)
    return given


def _death(code: int, stderr: str) -> str:
    """Return how a process ended, and the last that it said."""
    last = next((line.strip() for line in reversed(stderr.splitlines()) if line.strip()), "")
    more = f": {last[:_LAST]}" if last else ""
    if code < 0:
        return f"its code killed the process that traced it ({signal.Signals(-code).name}){more}"
    if "MemoryError" in last or "bad_alloc" in last or "not enough memory" in last:
        return f"its code used more than {_ROOM // _GIB} GiB of host memory although tensors have no values"
    return f"its code ended the process that traced it (exit status {code}){more}"


def main() -> None:
    """Read a call from stdin, and write what it returns to stdout, or in words why it returns nothing."""
    out = sys.stdout.buffer
    # Libraries print; stdout is for the result.
    sys.stdout = sys.stderr
    name, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    module = import_module(f"oomdoctor.tracing.{name}")
    _limit_memory()
    try:
        given = getattr(module, name)(*arguments)
    except Untraceable as why:
        given = str(why)
    out.write(pickle.dumps(given))
    out.flush()


def _limit_memory() -> None:
    """Let this process grow by so much and no further, where the system can say how large it is."""
    try:
        resource = import_module("resource")
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):
        return
