"""Imports point down only, rooms of one layer do not know each other, no files import each other in a circle, and starting up stays light."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "oomdoctor"
LAYERS = (
    {"units", "errors", "cache", "opening", "versions"},
    {"case", "extras"},
    {"knowledge", "ingest"},
    {"reading"},
    {"findings", "memory", "parse", "redaction", "simulation"},
    {"advice", "configs", "setups", "snapshots", "tracing", "judging"},
    {"machine", "planning"},
    {"comparing", "record"},
    {"series", "triage"},
    {"api"},
    {"report"},
    {"mcp"},
    {"cli"},
    {"start", "pytest_plugin"},
)
"""The rooms, lowest first. A room imports from itself and from lower layers."""
LAYER_OF = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
MOST_LATE_IMPORTS = 50
"""Imports inside functions, in the whole package. Each says its reason."""
MOST_ANY_DICTS = 21
"""Mappings of anything, in the whole package: at the edge, where files are read, and written by the recorder, which has no msgspec."""


def module_name(path: Path) -> str:
    return ".".join(("oomdoctor", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of the package that a module imports, those for type checking and inside functions included."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            out |= {name if name in modules() else node.module for name in names}
        elif isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names}
    return frozenset(name for name in out if name.split(".")[0] == "oomdoctor" and name != module)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_imports_point_down() -> None:
    own = [name for name in modules() if room(name) in LAYER_OF]
    pairs = [(name, other) for name in own for other in imports(name) if room(other) not in (room(name), "")]
    assert [f"{name} imports {other}" for name, other in pairs if LAYER_OF[room(other)] >= LAYER_OF[room(name)]] == []


def test_every_room_has_a_layer() -> None:
    assert {room(name) for name in modules()} == {*LAYER_OF, "", "__main__"}


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {name: {other for other in imports(name) if other != "oomdoctor"} for name in modules() if name != "oomdoctor"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


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
            "import os; from oomdoctor.machine.collect.environment import collect_environment; collect_environment(os.environ)",
            ["torch", "rich", "yaml", "pynvml", "subprocess", "ctypes", "importlib.metadata"],
            id="describing this machine",
        ),
    ],
)
def test_does_not_load(code: str, absent: list[str]) -> None:
    check = f"{code}\nimport sys; print([name for name in {absent!r} if name in sys.modules])"
    # A process whose coverage is measured loads more.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", check], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_few_imports_stand_inside_functions_and_each_says_why() -> None:
    lines = [line for path in modules().values() for line in path.read_text(encoding="utf-8").splitlines() if "noqa: PLC0415" in line]
    assert [line for line in lines if "PLC0415 - " not in line] == []
    assert len(lines) <= MOST_LATE_IMPORTS


def test_few_mappings_of_anything() -> None:
    texts = [path.read_text(encoding="utf-8") for path in modules().values()]
    assert sum(len(re.findall(r"(?:Mapping|[dD]ict)\[str, Any\]", text)) for text in texts) <= MOST_ANY_DICTS
