"""The benchmark for other tools: its table is what a run gives, and any command can be asked."""

from __future__ import annotations

import sys
from pathlib import Path

import other_tools
import pytest
from other_tools import REPORT, Score, Situation, Told, by_command, score, situations, table, written


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[Situation]:
    return list(situations(tmp_path_factory.mktemp("situations")))


@pytest.mark.parametrize("name", ["oomdoctor", "grep"])
def test_the_table_of_the_document_is_what_a_run_gives(name: str, everything: list[Situation]) -> None:
    row = table({name: score(other_tools.TOOLS[name], everything)})[-1]
    assert row in written(REPORT.read_text(encoding="utf-8")).values()


def test_every_tool_that_has_an_adapter_stands_in_the_table() -> None:
    assert len(written(REPORT.read_text(encoding="utf-8"))) == 2 + len(other_tools.TOOLS)


ANSWERS = {
    "a line of JSON": ('print(\'reading\'); print(\'{"memory_failure": "yes", "kind": "host-oom"}\')', Told("yes", "host-oom")),
    "JSON without the memory": ('print(\'{"memory_failure": "possible"}\')', Told("possible")),
    "status 1": ("raise SystemExit(1)", Told("yes")),
    "status 0 and words": ("print('all is well')", Told("no")),
    "JSON of something else": ("print('[1]')", Told("no")),
}


@pytest.mark.parametrize(("program", "told"), ANSWERS.values(), ids=ANSWERS)
def test_a_command_is_understood(program: str, told: Told, tmp_path: Path) -> None:
    assert by_command([sys.executable, "-c", program, "{}"], tmp_path) == told


def test_what_counts_as_right(tmp_path: Path) -> None:
    asked = [
        Situation(tmp_path / "failed", frozenset({"yes"}), "device-oom"),
        Situation(tmp_path / "failed too", frozenset({"yes"}), "host-oom"),
        Situation(tmp_path / "open", frozenset({"possible", "no"}), None),
        Situation(tmp_path / "healthy", frozenset({"no"}), None),
    ]
    says = {"failed": Told("yes", "device-oom"), "failed too": Told("no"), "open": Told("possible"), "healthy": Told("yes")}
    assert score(lambda folder: says[folder.name], asked) == Score(2, 4, 1, 2, 1, 1, 1, 2)
