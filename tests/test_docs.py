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


COMMANDS_PAGE = ROOT / "docs" / "commands.md"
PRINTED = re.findall(r"^<!-- printed: (.*?) -->\n```\w*\n(.*?)^```", COMMANDS_PAGE.read_text(encoding="utf-8"), re.M | re.S)
LONGEST_README = 120
"""Lines: a page, with the rest in docs/."""


@pytest.mark.parametrize(("command", "output"), PRINTED, ids=[command for command, _ in PRINTED])
def test_what_the_page_of_commands_shows_is_what_the_command_prints(command: str, output: str, bless: bool) -> None:
    environ = os.environ | {"COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", *command.split()], cwd=ROOT, env=environ, capture_output=True, encoding="utf-8"
    )
    if bless:
        COMMANDS_PAGE.write_text(COMMANDS_PAGE.read_text(encoding="utf-8").replace(output, done.stdout), encoding="utf-8")
        output = done.stdout
    assert (done.returncode, done.stdout) == (0, output)


def test_every_command_stands_in_the_page_of_commands() -> None:
    page = COMMANDS_PAGE.read_text(encoding="utf-8")
    assert PRINTED and [name for name in COMMANDS if f"oomdoctor {name}" not in page] == []


def test_the_readme_is_one_page_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= LONGEST_README
    links = re.findall(r"\]\((?!https?:)([^()#\s]+)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert re.findall(r"^<!-- ci: (\w+) -->$", README, re.MULTILINE) == ["diagnose", "triage", "tests"]


def test_the_example_of_the_library_is_true() -> None:
    diagnosis = oomdoctor.diagnose("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert diagnosis.case.verdict.memory_failure == "yes"
    assert diagnosis.case.incidents[0].root.fields["requested_bytes"] == 2147483648


def test_the_number_of_messages_is_not_exaggerated() -> None:
    claimed = re.search(r"more than (\d+) messages", README)
    assert claimed is not None
    assert load_pack().size > int(claimed[1])


DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    "bench/README.md",
)
FILES = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_a_document_names_exists(document: str) -> None:
    """Paths from the root, and files of the package by the end of their path; what stands in capitals is for a name to put in."""
    text = (ROOT / document).read_text(encoding="utf-8")
    top = "docs|fixtures|oomdoctor|rules|tests|bench|tools"
    named = set(re.findall(rf"(?<![\w/.-])(?:{top})/[\w/.-]*\w", text))
    ours = document in ("CONTRIBUTING.md", "docs/architecture.md")  # the others name files of other projects too
    modules = {name for name in re.findall(r"(?<![\w/.-])[a-z_][\w/]*\.py\b", text) if ours and name.split("/")[0] not in top.split("|")}
    made = {
        name
        for name in named
        if name.endswith(("gpufarm.yaml", "farmserve.yaml", "gpufarm-quota.yaml", "gpufarm-raise-quota.yaml", "readers/properties.py"))
    }
    schema = r"oomdoctor/\w+/v\d+"
    assert [name for name in sorted(named - made) if name not in FILES and not re.search(rf"[A-Z]{{3}}|^{schema}$", name)] == []
    assert [name for name in sorted(modules) if not any(f"/{file}".endswith(f"/{name}") for file in FILES)] == []


def test_text_about_memory_errors_is_not_a_memory_error() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "CHANGELOG.md"):
        found = pipeline.diagnose_logs([path.name], load_pack(), text=path.read_bytes())
        assert (path.name, found.case.verdict.memory_failure) == (path.name, "no")


def test_our_own_source_tree_holds_no_failure() -> None:
    from oomdoctor.ingest.sources import expand_sources

    for folder in ("oomdoctor", "rules", "tests", "docs", "bench"):
        found = pipeline.diagnose_logs(list(expand_sources([str(ROOT / folder)])), load_pack())
        assert (folder, found.case.verdict.memory_failure) == (folder, "no")
