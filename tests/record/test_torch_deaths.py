"""Commands of the real torch that die: a rank of torchrun, a worker of a loader, a loader that fills /dev/shm.

As PYTHON_WITH_TORCH names an interpreter, or in this one; `.ci/run` has torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from record.died import ROOT, mounts_tmpfs

from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.record.read_folder import read_evidence

PYTHON = os.environ.get("PYTHON_WITH_TORCH", sys.executable)
HAS_TORCH = sys.platform.startswith("linux") and not subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode
pytestmark = [pytest.mark.torch, pytest.mark.skipif(not HAS_TORCH, reason="no torch here")]

RANK = """
import os, signal, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(4))
if dist.get_rank() == 1: os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(4))
time.sleep(30)
"""
WORKER = """
import os, signal
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 64
    def __getitem__(self, at):
        if at == 40: os.kill(os.getpid(), signal.SIGKILL)
        return at
for batch in DataLoader(Rows(), batch_size=4, num_workers=2): pass
"""
LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 64
    def __getitem__(self, at): return torch.ones(1 << 20)
for batch in DataLoader(Rows(), batch_size=8, num_workers=2): pass
"""
OUT_OF_MEMORY = """
import os
import torch
if os.environ["RANK"] == "1": raise torch.OutOfMemoryError(
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.65 GiB of which 45.06 MiB is free. Of the allocated "
    "memory 23.01 GiB is allocated by PyTorch, and 9.49 MiB is reserved by PyTorch but unallocated.")
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
Run = Callable[..., tuple[int, Diagnosis]]


@pytest.fixture
def watched(tmp_path: Path) -> Run:
    """Runs a program under `oomdoctor run` and returns its status and what its evidence says."""

    def run(program: str, *launcher: str, before: tuple[str, ...] = ()) -> tuple[int, Diagnosis]:
        script, folder = tmp_path / "program.py", tmp_path / "evidence"
        script.write_text(program)
        command = [*before, sys.executable, "-m", "oomdoctor", "run", "--quiet", "--out", str(folder), "--", PYTHON, *launcher, str(script)]
        with (tmp_path / "log").open("wb") as log:
            done = subprocess.run(command, stdout=log, stderr=log, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=600)
        return done.returncode, diagnose_evidence(str(folder), load_pack())

    return run


def first(diagnosis: Diagnosis) -> tuple[str, str]:
    """Return the first finding and how sure it is."""
    return diagnosis.findings[0].id, diagnosis.findings[0].confidence.value


@pytest.mark.parametrize(("program", "launcher"), [
    pytest.param(RANK, TORCHRUN, id="one of two ranks of torchrun"),
    pytest.param(WORKER, (), id="a worker of a loader"),
])  # fmt: skip
def test_what_somebody_kills_is_no_memory_failure(watched: Run, program: str, launcher: tuple[str, ...]) -> None:
    status, diagnosis = watched(program, *launcher)
    assert (status, diagnosis.case.verdict.memory_failure, first(diagnosis)) == (1, "no", ("killed-by-hand", "certain"))


def test_what_the_agent_of_torchrun_says_follows_from_the_rank_that_failed(watched: Run, tmp_path: Path) -> None:
    """The agent is a Python of the run, too, and ends by an exception of its own, later."""
    _, diagnosis = watched(OUT_OF_MEMORY, *TORCHRUN)
    ended_by = {rank.rank: rank.exception.type for rank in read_evidence(str(tmp_path / "evidence")).ranks if rank.exception is not None}
    assert ended_by == {1: "torch.OutOfMemoryError", None: "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"}
    incident, *others = diagnosis.case.incidents
    assert (incident.kind.value, others) == ("device-oom", [])
    assert diagnosis.case.verdict.kind.value == "device-oom"


@pytest.mark.skipif(not mounts_tmpfs(), reason="no file system may be mounted here")
def test_a_loader_fills_shm(watched: Run) -> None:
    inside = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=16m tmpfs /dev/shm && "$@"', "sh")
    status, diagnosis = watched(LOADER, before=inside)
    assert (status, first(diagnosis)[0], diagnosis.case.verdict.certainty.value) == (1, "shm-too-small", "certain")
