"""The workflow that tests on Linux, macOS and Windows: well-formed, and its steps run here where they need no network."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from script_programs import ROOT, program, tool

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
_LEFT_OUT = re.compile(r"pip install|\.ci/run|-m pytest|rules test")
"""Needs the network, runs all the tests, this one too, or is what .ci/run does for minutes."""


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = loaded["jobs"]
    return found


SCRIPTS = {
    f"{path.stem}, {name}: {step['name']}": str(step["run"])
    for path in WORKFLOWS
    for name, job in jobs(path).items()
    for step in job["steps"]
    if "run" in step
}
STEPS = [pytest.param(script, id=name) for name, script in SCRIPTS.items()]
RUN_HERE = [pytest.param(script, id=name) for name, script in SCRIPTS.items() if not _LEFT_OUT.search(script)]


def test_the_tests_and_the_wheel_are_tried_on_three_systems() -> None:
    made = jobs(ROOT / ".github/workflows/tests.yml")
    for name in ("systems", "wheel"):
        assert {system.partition("-")[0] for system in made[name]["strategy"]["matrix"]["os"]} == {"ubuntu", "macos", "windows"}
    declared = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "setup.cfg").read_text())
    assert made["systems"]["strategy"]["matrix"]["python"] == [declared[0], declared[-1]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_ends_by_itself(path: Path) -> None:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert loaded["permissions"] == {"contents": "read"}
    for job in jobs(path).values():
        assert job["timeout-minutes"] <= 45
        assert all("@" in step["uses"] for step in job["steps"] if "uses" in step)


@pytest.mark.parametrize("script", STEPS)
def test_a_step_is_a_script_of_bash_that_takes_no_text_of_others(script: str) -> None:
    subprocess.run(["bash", "-n", "-c", script], check=True, capture_output=True)
    assert "${{" not in script


@pytest.mark.parametrize("script", RUN_HERE)
def test_a_step_runs(script: str, tmp_path: Path) -> None:
    program(tmp_path / "bin", "python", f'exec {shlex.quote(sys.executable)} "$@"')
    tool(tmp_path / "bin")
    (tmp_path / "temp").mkdir()
    environ = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(tmp_path / "temp"),
    }
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_what_runs_here_is_more_than_nothing() -> None:
    assert len(RUN_HERE) >= 2
