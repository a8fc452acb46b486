"""Measures `oomdoctor triage` on fleets of its own: files a second, CPU seconds and memory of all its processes, and the second run.

    python bench/triage.py --python .venv/bin/python --jobs 250,2500,25000
    python bench/triage.py --python .venv/bin/python --jobs 250000 --lines 2 --keep FOLDER

A fleet has four files a job on average: Slurm's two streams, torchrun's processes, pods. The same seed gives the same bytes. Linux only:
memory is the proportional set size of the whole tree, looked at three times a second; CPU seconds are those of all processes, the ones
that others waited for too. On a machine that does other work beside it CPU seconds tell more than the wall clock.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER: what a process leaves behind is waited for here."""
_EVERY_S = 0.3
_MEMORY = (
    'Traceback (most recent call last):\n  File "/home/u/train.py", line {line}, in step\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {ask}.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.12 GiB "
    "is free. Of the allocated memory 71.10 GiB is allocated by PyTorch, and 2.60 GiB is reserved by PyTorch but unallocated.\n"
)
_OTHER = (
    "Traceback (most recent call last):\n  File \"/home/u/train.py\", line {line}, in main\n    run()\nKeyError: 'input_ids'\n",
    "slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2025-06-03T01:02:03 ***\n",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/{line}/train.jsonl'\n",
)


@dataclass(frozen=True)
class Run:
    """What one run took; `memory` is MiB."""

    wall: float
    cpu: float
    memory: float


def make_fleet(root: Path, jobs: int, lines: int, seed: int) -> int:
    """Write the logs of some jobs, and return how many files there are."""
    dice = Random(seed)
    files = 0
    for number in range(jobs):
        for name, text in _job(number, lines, dice):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            files += 1
    return files


def _job(number: int, lines: int, dice: Random) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the files of a job."""
    native, user = 700_000 + number, f"u{number % 97:02d}"
    drawn = dice.random()
    end = _MEMORY if drawn < 0.04 else dice.choice(_OTHER) if drawn < 0.3 else "Training completed.\n"
    end = end.format(line=dice.randrange(1, 400), ask=dice.randrange(1, 9))
    kind = dice.random()
    if kind < 0.6:
        yield f"slurm/{user}/run{number % 13}/sft-{native}.out", _body(lines, dice) + end
        yield f"slurm/{user}/run{number % 13}/sft-{native}.err", ""
    elif kind < 0.8:
        failing, run_folder = dice.randrange(8), f"none_{dice.randrange(16**8):08x}"
        yield f"torchrun/sft-{native}/launcher.out", _body(lines, dice)
        for rank in range(8):
            text = _body(lines, dice) + (end if rank == failing else "")
            yield f"torchrun/sft-{native}/{run_folder}/attempt_0/{rank}/stderr.log", text
    else:
        pod = f"team_sft-{native}-worker-{{}}_{dice.randrange(16**8):08x}-53f2-4d0b-9a51-1f6f0e7a2b11"
        for worker in range(4):
            text = _body(lines, dice) + (end if worker == 0 else "")
            wrapped = "".join(f"2025-06-03T01:02:03.000000001Z stderr F {line}\n" for line in text.splitlines())
            yield f"nodes/node-{number % 40:03d}/var/log/pods/{pod.format(worker)}/pytorch/0.log", wrapped


def _body(lines: int, dice: Random) -> str:
    """Return what a healthy run prints."""
    return "".join(
        f"step {step * 10} loss {dice.random() * 3:.4f} lr 2.0e-05 tokens/s {dice.randrange(900, 4000)}\n" for step in range(lines)
    )


def run(words: list[str]) -> Run:
    """Run a command to its end and that of all processes which it leaves."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(child, peak), daemon=True)
    watcher.start()
    status = child.wait()
    wall = time.perf_counter() - start
    watcher.join()
    with suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status not in (0, 1):
        raise SystemExit(f"status {status}: {' '.join(words)}")
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak[0] / 1024)


def _watch(child: subprocess.Popen[bytes], peak: list[int]) -> None:
    while child.poll() is None:
        peak[0] = max(peak[0], sum(map(_pss, _tree(child.pid))))
        time.sleep(_EVERY_S)


def _tree(root: int) -> list[int]:
    """Return a process and all below it."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        status = _told(name, "stat") if name.isdigit() else ""
        if status:
            children.setdefault(int(status.rsplit(")", 1)[1].split()[1]), []).append(int(name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _pss(process: int) -> int:
    lines = _told(str(process), "smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _told(process: str, file: str) -> str:
    """Return what the kernel tells of a process; nothing of one that has ended."""
    try:
        return Path("/proc", process, file).read_text()
    except OSError:
        return ""


def main() -> None:
    """Make the fleets, run each twice, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has oomdoctor")
    parser.add_argument("--jobs", default="250,2500,25000", help="jobs of each fleet, separated by commas")
    parser.add_argument("--lines", type=int, default=60, help="lines of progress in each file")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", type=Path, help="measure the logs in this folder, and make none")
    parser.add_argument("--keep", type=Path, help="where fleets and stores lie; they stay there")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    work = options.keep or Path(tempfile.mkdtemp(prefix="triage-"))
    work.mkdir(parents=True, exist_ok=True)
    print(
        "| files | first run | CPU | files/s | memory | second run | CPU | first / second | load |\n|---|---|---|---|---|---|---|---|---|"
    )
    try:
        for jobs in [0] if options.logs else map(int, options.jobs.split(",")):
            _measure(options, work, jobs)
    finally:
        if options.keep is None:
            shutil.rmtree(work)


def _measure(options: argparse.Namespace, work: Path, jobs: int) -> None:
    """Print the line of one fleet."""
    fleet, store = options.logs or work / f"fleet-{jobs}", work / f"store-{jobs}"
    if not fleet.exists():
        make_fleet(fleet, jobs, options.lines, options.seed)
    shutil.rmtree(store, ignore_errors=True)
    files = sum(len(names) for _, _, names in os.walk(fleet))
    words = [options.python, "-m", "oomdoctor", "triage", str(fleet), "--store", str(store), "-o", str(work / "rows.jsonl")]
    words += ["--jobs", str(options.processes)]
    first, second = run(words), run(words)
    print(
        f"| {files:,} | {first.wall:.1f} s | {first.cpu:.1f} s | {files / first.wall:,.0f} | {first.memory:.0f} MiB | {second.wall:.2f} s "
        f"| {second.cpu:.2f} s | {first.wall / second.wall:.0f} (CPU {first.cpu / second.cpu:.0f}) | {os.getloadavg()[0]:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
