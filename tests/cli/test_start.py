"""`python -m oomdoctor` where something that it needs is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "oomdoctor"
START = "import runpy, sys; sys.modules[{name!r}] = None; sys.argv[1:] = ['explain', 'fragmentation']; runpy.run_module('oomdoctor', run_name='__main__')"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of one's own: the project's may have the environment that README.md makes."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(PACKAGE, root / "oomdoctor", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def start_without(name: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START.format(name=name)], cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "name", [pytest.param("click", id="missing before a command is known"), pytest.param("msgspec", id="missing when a command is loaded")]
)
def test_a_missing_dependency_is_one_line_and_no_traceback(name: str, checkout: Path) -> None:
    done = start_without(name, checkout)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"oomdoctor: {name} is not installed for this Python; in the checkout: python -m pip install .\n"


def test_a_module_of_our_own_that_is_missing_is_a_defect_and_shows_its_traceback(checkout: Path) -> None:
    done = start_without("oomdoctor.report", checkout)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_the_environment_of_the_checkout_takes_over_where_this_python_lacks_something(checkout: Path) -> None:
    own = checkout / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text('#!/bin/sh\necho "$@"\nexit 1\n')
    own.chmod(0o755)
    done = start_without("msgspec", checkout)
    shutil.rmtree(checkout / ".venv")
    assert (done.returncode, done.stdout, done.stderr) == (1, "-m oomdoctor explain fragmentation\n", "")
