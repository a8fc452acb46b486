"""What the scripts under integrations/ are run with: the tool as a program, logs, other programs that write down how they are called."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
INTEGRATIONS = ROOT / "integrations"
WELL = "step 10 loss 2.1\nTraining completed.\n"
AT_LOAD = (
    'Traceback (most recent call last):\n  File "/home/me/fit.py", line 12, in main\n    model = AutoModel.from_pretrained(path).to("cuda")\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is "
    "free. Including non-PyTorch memory, this process has 38.20 GiB memory in use. Of the allocated memory 36.60 GiB is allocated by "
    "PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated.\n"
)


def program(folder: Path, name: str, script: str) -> Path:
    """Make a shell script that a PATH finds."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def tool(folder: Path) -> Path:
    """Make `oomdoctor` a program in a folder."""
    return program(folder, "oomdoctor", f'exec {shlex.quote(sys.executable)} -m oomdoctor "$@"')


def recorder(folder: Path, name: str, output: str = "") -> Path:
    """Make a program that writes each call into NAME.calls, an argument a line, and prints `output`; return the file of the calls."""
    calls = folder / f"{name}.calls"
    program(folder, name, f"printf '%s\\n' \"$@\" >> {shlex.quote(str(calls))}\nprintf '%s' {shlex.quote(output)}")
    return calls


def run(script: str, *arguments: str, path: Path | str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script under integrations/."""
    found = os.environ["PATH"] if path is None else f"{path}{os.pathsep}{os.environ['PATH']}"
    told: Mapping[str, str] = {**os.environ, "PATH": found, **environ}
    return subprocess.run([str(INTEGRATIONS / script), *arguments], env=told, capture_output=True, text=True, timeout=600)
