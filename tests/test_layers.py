"""Imports point down only, packages of one level do not know each other, and starting up stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "oomdoctor"
LEVELS = {
    "__main__": 10,
    "cli": 9,
    "report": 8, "examples": 8, "__init__": 8,
    "comparing": 7.7,
    "pipeline": 7.5, "judge": 7.5,
    "reading": 7,
    "changes": 6.8,
    "training": 6.5,
    "planning": 6.3,
    "sizing": 6.2,
    "tracing": 6,
    "scan": 6, "parse": 6, "environment": 6, "timeline": 6, "findings": 6,
    "memory": 5.5,
    "knowledge": 5,
    "case": 4,
    "units": 3,
    "errors": 3,
    "cache": 3,
}  # fmt: skip
FROM_SCAN = {"parse": {"oomdoctor.ingest.clean", "oomdoctor.ingest.windows"}}
"""Windows are what scanning hands to parsing: the one thing that two packages of a level share besides `case`."""


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    named += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return [name for name in named if name.split(".")[0] == "oomdoctor"]


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(PACKAGE))) for path in sorted(PACKAGE.rglob("*.py"))])
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    wrong = []
    for name in imports(path):
        other = part(name)
        if other == own or other == "__init__" or name in FROM_SCAN.get(own, set()):
            continue
        if LEVELS[other] >= LEVELS[own]:
            wrong.append(name)
    assert own == "__init__" or wrong == []


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        pytest.param("import oomdoctor", ["torch", "rich", "yaml", "click", "pynvml", "msgspec", "hyperscan"], id="importing the package"),
        pytest.param(
            "import oomdoctor; oomdoctor.diagnose('CUDA error: out of memory')",
            ["torch", "rich", "click", "pynvml", "hyperscan"],
            id="diagnosing a pasted line",
        ),
        pytest.param("import oomdoctor.cli.main", ["torch", "rich", "yaml", "pynvml", "json"], id="starting the command line"),
        pytest.param("import oomdoctor.cli.diagnose", ["torch", "rich", "yaml", "pynvml"], id="loading the main command"),
        pytest.param(
            "import os; from oomdoctor.machine.collect.environment import collect; collect(os.environ)",
            ["torch", "rich", "yaml", "pynvml", "subprocess", "ctypes", "importlib.metadata"],
            id="describing this machine",
        ),
    ],
)
def test_does_not_load(code: str, absent: list[str]) -> None:
    check = f"{code}\nimport sys; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
