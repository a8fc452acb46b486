"""`python -m oomdoctor` where something that it needs is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = "import runpy, sys; sys.modules[{name!r}] = None; sys.argv[1:] = ['explain', 'fragmentation']; runpy.run_module('oomdoctor', run_name='__main__')"


def start_without(name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START.format(name=name)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "name", [pytest.param("click", id="missing before a command is known"), pytest.param("msgspec", id="missing when a command is loaded")]
)
def test_a_missing_dependency_is_one_line_and_no_traceback(name: str) -> None:
    done = start_without(name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"oomdoctor: {name} is not installed for this Python; in the checkout: python -m pip install .\n"


def test_a_module_of_our_own_that_is_missing_is_a_defect_and_shows_its_traceback() -> None:
    done = start_without("oomdoctor.report")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
