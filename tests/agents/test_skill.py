"""The skill file: its head as clients read it, and commands that run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from oomdoctor.cli.main import COMMANDS

REPOSITORY = Path(__file__).parents[2]
SKILL = REPOSITORY / "skills/oomdoctor/SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
COMMAND_LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
STATUS = {"diagnose": 1, "plan": 0, "fix": 1, "check": 1, "estimate": 1, "run": 3, "snapshot": 0, "env": 0, "triage": 1}
"""How each ends on the run that the test lays down: it died, and does not fit a smaller card; of the fix a part waits for a person."""


def test_the_head_is_as_clients_ask_for_it() -> None:
    head = yaml.safe_load(TEXT.split("---")[1])
    assert head["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", head["name"])
    assert len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """The files that the commands name."""
    shutil.copy(REPOSITORY / "fixtures/compare/today.log", tmp_path / "train.log")
    shutil.copy(REPOSITORY / "fixtures/compare/today.yaml", tmp_path / "sft.yaml")
    (tmp_path / "train.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "snapshot.pickle").write_bytes(b"\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\x0ddevice_traces\x94]\x94]\x94au.")
    (tmp_path / "logs").mkdir()
    shutil.copy(tmp_path / "train.log", tmp_path / "logs" / "job-1.out")
    return tmp_path


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_of_it_runs(line: str, run_folder: Path) -> None:
    words = shlex.split(line)
    assert words[0] == "oomdoctor"
    command = [sys.executable, "-m", *words]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where a `python` is
    environ = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(run_folder)}
    done = subprocess.run(command, cwd=run_folder, env=environ, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == STATUS[words[1]], f"{line}\n{done.stdout}\n{done.stderr}"


def test_what_it_names_is_there() -> None:
    for name in re.findall(r"`oomdoctor ([a-z]+)", TEXT):
        assert name in COMMANDS
    pytest.importorskip("mcp")
    from oomdoctor.mcp import diagnosing, reading, sizing  # noqa: PLC0415 - needs the extra

    tools = {name for kind in (diagnosing.DiagnosingTools, sizing.SizingTools, reading.ReadingTools) for name in vars(kind)}
    named = re.findall(r"`([a-z]+_[a-z]+)`", TEXT)
    assert set(named) == {name for name in tools if not name.startswith("_")}
