"""What the documents say is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oomdoctor
from oomdoctor.api import pipeline
from oomdoctor.cli.main import COMMANDS
from oomdoctor.knowledge.pack import load_pack

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


PRINTED = re.findall(r"^<!-- printed: (.*?) -->\n```\w*\n(.*?)^```", README, re.M | re.S)


@pytest.mark.parametrize(("command", "output"), PRINTED, ids=[command for command, _ in PRINTED])
def test_what_the_readme_shows_is_what_the_command_prints(command: str, output: str, bless: bool) -> None:
    environ = os.environ | {"COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", *command.split()], cwd=ROOT, env=environ, capture_output=True, encoding="utf-8"
    )
    if bless:
        path = ROOT / "README.md"
        path.write_text(path.read_text(encoding="utf-8").replace(output, done.stdout), encoding="utf-8")
        output = done.stdout
    assert (done.returncode, done.stdout) == (0, output)


def test_every_command_stands_in_the_readme() -> None:
    assert [name for name in COMMANDS if f"oomdoctor {name}" not in README] == []


def test_the_example_of_the_library_is_true() -> None:
    diagnosis = oomdoctor.diagnose("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert diagnosis.case.verdict.memory_failure == "yes"
    assert diagnosis.case.incidents[0].root.fields["requested_bytes"] == 2147483648


def test_the_number_of_messages_is_not_exaggerated() -> None:
    claimed = re.search(r"more than (\d+) messages", README)
    assert claimed is not None
    assert load_pack().size > int(claimed[1])


def test_every_file_that_the_documents_name_exists() -> None:
    text = README + (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/])(?:docs|fixtures|oomdoctor)/[\w/.-]+\w", text))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_text_about_memory_errors_is_not_a_memory_error() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "CHANGELOG.md"):
        found = pipeline.diagnose_logs([path.name], load_pack(), text=path.read_bytes())
        assert (path.name, found.case.verdict.memory_failure) == (path.name, "no")


def test_our_own_source_tree_holds_no_failure() -> None:
    from oomdoctor.ingest.sources import expand_sources

    for folder in ("oomdoctor", "rules", "tests", "docs", "bench"):
        found = pipeline.diagnose_logs(list(expand_sources([str(ROOT / folder)])), load_pack())
        assert (folder, found.case.verdict.memory_failure) == (folder, "no")
