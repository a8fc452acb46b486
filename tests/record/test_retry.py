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
        done = subprocess.run(call, cwd=place, env=environ, stdout=log, stderr=log, timeout=120, check=False)
    assert done.returncode == (0 if "workers 2" in (place / "log").read_text() and most >= 2 else 1)
    return (place / "log").read_text()


def test_a_sure_diagnosis_is_tried_again_with_a_copy(tmp_path: Path) -> None:
    said = tried(tmp_path, most=2)
    assert [line for line in said.splitlines() if line.startswith("workers")] == ["workers 8", "workers 2"]
    assert "oomdoctor: attempt 2 of 3, with fewer-workers:" in said
    assert (tmp_path / "sft.yaml").read_text() == CONFIG
    assert (tmp_path / "evidence" / "attempts" / "1" / "run.json").exists()
    assert '"attempt": 2' in (tmp_path / "evidence" / "run.json").read_text()


def test_the_same_failure_twice_stops_it(tmp_path: Path) -> None:
    said = tried(tmp_path, most=0, figure="711")
    assert said.count("\nworkers") + said.startswith("workers") == 2
    assert "oomdoctor: no further attempt: the same failure came twice" in said


def test_nothing_is_tried_where_no_config_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text(CONFIG)
    said = tried(tmp_path, most=0, words=("-", "settings"))
    assert said.count("workers 8\n") == 1
    assert "no further attempt: the command names no config file that could be changed" in said


def test_nobody_asked_for_it(tmp_path: Path) -> None:
    said = tried(tmp_path, most=0, retry="0")
    assert said.count("workers 8\n") == 1
    assert "attempt" not in said
