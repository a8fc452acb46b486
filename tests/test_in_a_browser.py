"""The same answers where the interpreter runs in a browser: no threads, no processes, no `preadv`, and fewer modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

IN_A_BROWSER = """
import importlib.abc, os, sys, threading
ABSENT = {"pwd", "grp", "resource", "readline", "termios", "hyperscan", "isal", "pynvml"}
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(name)
def fails(*arguments):
    raise OSError(52, "not implemented")
def no_thread(self):
    raise RuntimeError("can't start new thread")
sys.meta_path.insert(0, Absent())
for name in ABSENT:
    sys.modules.pop(name, None)
sys.platform = "emscripten"
os.fork = fails
threading.Thread.start = no_thread
for name in ("preadv", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
"""
DIAGNOSE = """
import sys
import oomdoctor
from oomdoctor.parse import reading
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording
reading._SPLIT = 1 << 20  # from here on threads share a log
print(json_text(convert_diagnosis(oomdoctor.diagnose(sys.argv[1:], jobs=4), Wording("en"), "0")))
"""
SNAPSHOT = """
import sys
from oomdoctor.api.runs.snapshot import snapshot
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.runs.snapshot import convert_snapshot
from oomdoctor.report.wording.wording import Wording
print(json_text(convert_snapshot(snapshot(sys.argv[1:]), Wording("en"), "0")))
"""
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.50 GiB.\n"


def answer(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("size", [pytest.param(1 << 10, id="a short log"), pytest.param(4 << 20, id="a log that threads share elsewhere")])
def test_a_log_is_diagnosed_alike(size: int, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 2.0\n" * (size // 16) + OOM)
    in_a_browser = answer(IN_A_BROWSER + DIAGNOSE, str(log))
    assert in_a_browser == answer(DIAGNOSE, str(log))
    assert "device-oom" in in_a_browser


def test_many_logs_are_diagnosed_alike(tmp_path: Path) -> None:
    for rank in range(12):
        (tmp_path / f"rank{rank}.log").write_text(f"[rank{rank}]: {OOM}")
    assert answer(IN_A_BROWSER + DIAGNOSE, str(tmp_path)) == answer(DIAGNOSE, str(tmp_path))


def test_a_snapshot_is_read_in_the_same_process(tmp_path: Path) -> None:
    from snapshots.made_snapshots import leaking, pickled

    path = tmp_path / "rank0.pickle"
    path.write_bytes(pickled(leaking()))
    assert answer(IN_A_BROWSER + SNAPSHOT, str(path)) == answer(SNAPSHOT, str(path))


def test_every_module_that_the_page_may_load_can_be_imported() -> None:
    """The rooms below the command line but for those that only start or trace runs."""
    root = Path(__file__).parents[1] / "oomdoctor"
    left_out = ("cli", "mcp", "start", "__main__", "tracing", "record", "triage", "machine", "api.fleet", "api.runs.watch", "api.runs.run")
    paths = (path.relative_to(root).with_suffix("") for path in sorted(root.rglob("*.py")))
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    wanted = [f"oomdoctor.{name}" for name in names if name != "__init__" and not name.startswith(left_out)]
    assert answer(IN_A_BROWSER + "import importlib\nfor name in sys.argv[1:]: importlib.import_module(name)", *wanted) == ""
