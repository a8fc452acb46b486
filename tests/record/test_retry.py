"""`--retry`: another attempt with a copy of the config, only where the diagnosis is sure and a fix is safe or allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="another attempt takes the place of the first")
ROOT = Path(__file__).parents[2]
TRAIN = """
import re, sys
workers = int(re.search(r"dataloader_num_workers: (\\d+)", open(sys.argv[2]).read())[1])
print("workers", workers)
if workers > {most}:
    sys.exit("RuntimeError: DataLoader worker (pid 4{figure}) is killed by signal: Bus error. It is possible that "
             "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.")
"""
CONFIG = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\n"
    "per_device_train_batch_size: 2\ndataloader_num_workers: 8\nbf16: true\noutput_dir: out\n"
)


def tried(place: Path, *, most: int, figure: str = "{workers}", retry: str = "2", words: tuple[str, ...] = ("--config", "sft.yaml")) -> str:
    """Run the training with errors in a file; return what was written to both."""
    (place / "sft.yaml").write_text(CONFIG)
    (place / "train.py").write_text(TRAIN.replace("{most}", str(most)).replace("{figure}", figure).replace('sys.exit("', 'sys.exit(f"'))
    call = [sys.executable, "-m", "oomdoctor", "run", "--retry", retry, "--out", "evidence", "--", sys.executable, "train.py", *words]
    environ = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    with open(place / "log", "w") as log:
        done = subprocess.run(call, cwd=place, env=environ, stdout=log, stderr=log, timeout=600, check=False)
    assert done.returncode == (0 if "workers 2" in (place / "log").read_text() and most >= 2 else 1)
    return (place / "log").read_text()


def test_a_sure_diagnosis_is_tried_again_with_a_copy(tmp_path: Path) -> None:
    said = tried(tmp_path, most=2)
    assert [line for line in said.splitlines() if line.startswith("workers")] == ["workers 8", "workers 4", "workers 2"]
    assert "oomdoctor: attempt 2 of 3, with fewer-workers:" in said
    assert (tmp_path / "sft.yaml").read_text() == CONFIG
    assert (tmp_path / "evidence" / "attempts" / "1" / "run.json").exists()
    assert '"attempt": 3' in (tmp_path / "evidence" / "run.json").read_text()


def test_the_same_failure_twice_stops_it(tmp_path: Path) -> None:
    said = tried(tmp_path, most=0, figure="711")
    assert said.count("\nworkers") + said.startswith("workers") == 2
    assert "oomdoctor: no further attempt: the same failure occurred twice" in said


def test_nothing_is_tried_where_no_config_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text(CONFIG)
    said = tried(tmp_path, most=0, words=("-", "settings"))
    assert said.count("workers 8\n") == 1
    assert "no further attempt: the command has no option that could be changed and names no config file" in said


def test_nobody_asked_for_it(tmp_path: Path) -> None:
    said = tried(tmp_path, most=0, retry="0")
    assert said.count("workers 8\n") == 1
    assert "attempt" not in said


FAILS = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free. "
FULL = FAILS + "Of the allocated memory 22.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
IN_PIECES = FAILS + "Of the allocated memory 14.00 GiB is allocated by PyTorch, and 8.20 GiB is reserved by PyTorch but unallocated."
OF_OPTIONS = f"""
import sys
batch = int(sys.argv[sys.argv.index("--per_device_train_batch_size") + 1])
print("batch", batch)
sys.exit({FULL!r} if batch > 4 else 0)
"""
OF_VARIABLES = f"""
import os, sys
options = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
print("options", options)
sys.exit({IN_PIECES!r} if "expandable_segments:True" not in options else 0)
"""


def cured(place: Path, program: str, *words: str, options: tuple[str, ...] = (), **variables: str) -> tuple[int, list[str]]:
    """Return the status and what the program and the wrapper said of the attempts."""
    (place / "train.py").write_text(program)
    call = [
        sys.executable,
        "-m",
        "oomdoctor",
        "run",
        "--retry",
        "2",
        *options,
        "--out",
        "evidence",
        "--",
        sys.executable,
        "train.py",
        *words,
    ]
    environ = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], **variables}
    with open(place / "log", "w") as log:
        done = subprocess.run(call, cwd=place, env=environ, stdout=log, stderr=log, timeout=600, check=False)
    said = (place / "log").read_text().splitlines()
    return done.returncode, [line for line in said if line.startswith(("batch", "options", "oomdoctor: attempt", "oomdoctor: no further"))]


def test_an_option_of_the_command_is_changed_where_somebody_allows_it(tmp_path: Path) -> None:
    status, said = cured(tmp_path, OF_OPTIONS, "--per_device_train_batch_size", "8", options=("--allow", "smaller-batch"))
    assert (status, said[0]) == (0, "batch 8")
    assert said[1].startswith("oomdoctor: attempt 2 of 3, with smaller-batch:")
    assert int(said[2].split()[1]) <= 4 and len(said) == 3


def test_what_changes_the_training_is_not_done_unasked(tmp_path: Path) -> None:
    status, said = cured(tmp_path, OF_OPTIONS, "--per_device_train_batch_size", "8")
    assert (status, said[0]) == (1, "batch 8")
    assert len(said) == 2 and said[1].startswith("oomdoctor: no further attempt:")


def test_a_safe_variable_is_set_beside_what_is_set(tmp_path: Path) -> None:
    status, said = cured(tmp_path, OF_VARIABLES, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64")
    assert (status, said[0]) == (0, "options max_split_size_mb:64")
    assert "with expandable-segments: env PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,expandable_segments:True" in said[1]
    assert said[2] == "options max_split_size_mb:64,expandable_segments:True"


def test_a_fix_that_there_is_not_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "oomdoctor", "run", "--retry", "1", "--allow", "smaler-batch", "--", "touch", "ran"]
    done = subprocess.run(
        call, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, (tmp_path / "ran").exists()) == (2, False)
    assert done.stderr == "oomdoctor: --allow: no fix is called 'smaler-batch'; did you mean 'smaller-batch'?\n"
