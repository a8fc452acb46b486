"""Variables for commands that somebody else starts; and what the wrapper leaves of its own."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fake_torch import write_fake_torch
from record.recorded import PYTHON, environment

from oomdoctor.record.read_folder import RunEvidence, read_evidence
from oomdoctor.record.recognise import is_evidence

ROOT = Path(__file__).parents[2]
DIES = "import sys; sys.path.append({site!r})\nimport torch\ntorch.cuda.allocate(900 << 20)\ntorch.cuda.allocate(600 << 20)\n"


def oomdoctor(place: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "oomdoctor", *words]
    return subprocess.run(
        command, cwd=place, env=environment(PYTHONPATH=str(ROOT), **variables), capture_output=True, text=True, timeout=600
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "die.py"
    path.write_text(DIES.format(site=str(write_fake_torch(tmp_path / "site-packages", "2.13.0"))))
    return path


def died(folder: Path) -> RunEvidence:
    assert is_evidence(str(folder))
    evidence = read_evidence(str(folder))
    assert [len(rank.ooms) for rank in evidence.ranks] == [1]
    return evidence


@pytest.mark.parametrize("before", ["", "/a:", ":/a b"])
def test_a_shell_can_evaluate_it(tmp_path: Path, script: Path, before: str) -> None:
    printed = oomdoctor(tmp_path, "run", "--print-env", "--out", "it's here").stdout
    lines = f'{printed}\necho "$PYTHONPATH"; exec {shlex.quote(PYTHON)} {shlex.quote(str(script))}'
    done = subprocess.run(["sh", "-c", lines], env=environment(PYTHONPATH=before), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == f"{tmp_path}/it's here/oomdoctor-inside{before and ':' + before}\n"
    evidence = died(tmp_path / "it's here")
    assert evidence.run is not None and [gap.what for gap in evidence.run.gaps] == ["the wrapper"]


def test_ray_takes_it(tmp_path: Path, script: Path) -> None:
    variables = json.loads(oomdoctor(tmp_path, "run", "--out", "here", "--level", "2", "--print-env", "ray").stdout)["env_vars"]
    subprocess.run([PYTHON, str(script)], env={**environment(), **variables}, capture_output=True)
    assert variables["OOM_SNAPSHOT_ENABLE"] == "1" and died(tmp_path / "here").ranks[0].ooms[0].count == 1


def test_a_command_is_needed_otherwise(tmp_path: Path) -> None:
    done = oomdoctor(tmp_path, "run")
    assert done.returncode == 2 and "COMMAND" in done.stderr and list(tmp_path.iterdir()) == []


def test_the_wrapper_brings_the_recorder_and_takes_it_away(tmp_path: Path, script: Path) -> None:
    done = oomdoctor(tmp_path, "run", "--out", "here", "--", PYTHON, str(script))
    assert done.returncode == 1 and done.stdout == ""
    assert not (tmp_path / "here" / "oomdoctor-inside").exists()
    died(tmp_path / "here")


def test_a_process_that_is_left_keeps_the_recorder(tmp_path: Path, script: Path) -> None:
    """It may import torch as late as that."""
    late = f"(sleep 3; exec {shlex.quote(PYTHON)} {shlex.quote(str(script))}) > /dev/null 2>&1 &"
    assert oomdoctor(tmp_path, "run", "--out", "here", "--", "sh", "-c", late).returncode == 0
    assert (tmp_path / "here" / "oomdoctor-inside").exists()


def test_a_command_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    assert oomdoctor(tmp_path, "run", "--", "./not-there").returncode == 127
    assert list(tmp_path.iterdir()) == []


def test_a_python_that_was_not_reached_is_a_gap(tmp_path: Path) -> None:
    fills = "import time; held = bytearray(160 << 20); time.sleep(0.5)"
    oomdoctor(tmp_path, "run", "--out", "here", "--", PYTHON, "-I", "-c", fills)
    run = json.loads((tmp_path / "here" / "run.json").read_text())
    assert "python -I does not search the recorder's path" in [gap["why"] for gap in run["gaps"]]
