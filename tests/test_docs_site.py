"""The documentation site's pages, before the generator: every link leads somewhere, each language has all of them, nothing is left out."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

import pytest
from build_docs import configuration
from docs_build.pages import GUIDES, HOW_WE_KNOW, TUTORIALS, Pages, Section, pages, title_of

from oomdoctor.cli.main import COMMANDS
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.wire.schemas import REPORTS

ROOT = Path(__file__).parents[1]
LANGUAGES = ("en", "zh")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^()\s]+)\)")


@cache
def site(lang: str) -> tuple[Pages, list[Section]]:
    return pages(lang)


def prose(text: str) -> str:
    """A page without its code."""
    return re.sub(r"^```.*?^```|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_link_leads_to_a_page_and_a_heading(lang: str) -> None:
    made, _ = site(lang)
    broken = []
    for path, text in made.items():
        for target in _LINK.findall(prose(text)):
            place, _, anchor = target.partition("#")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), place)) if place else path
            if to not in made or (anchor and anchor not in anchors(made[to])):
                broken.append(f"{path}: {target}")
    assert broken == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_that_is_no_piece_of_the_catalogue_is_arranged(lang: str) -> None:
    made, sections = site(lang)
    listed = {path for _, each in sections for path, _ in each}
    assert {path for path in made if not re.match(r"catalogue/\w+/", path)} - listed == {"index.md"}
    assert all(title_of(text) for text in made.values())


def test_both_languages_have_the_same_pages() -> None:
    assert set(site("en")[0]) == set(site("zh")[0])


def test_every_command_schema_problem_and_document_has_a_page() -> None:
    made = set(site("en")[0])
    assert {f"commands/oomdoctor-{name}.md" for name in COMMANDS} <= made
    assert {f"json/{name}.md" for name in REPORTS} <= made
    assert {f"catalogue/problems/{problem.id}.md" for problem in load_pack().problems} <= made
    written = {path.stem for path in (ROOT / "docs").glob("*.md") if not path.stem.startswith("index.")}
    assert written == {*GUIDES, *HOW_WE_KNOW}
    assert {path.name.split(".")[0] for path in (ROOT / "docs/tutorials").glob("*.md")} == set(TUTORIALS)


def test_what_the_site_is_told_is_well_formed() -> None:
    tomllib = pytest.importorskip("tomllib")
    for lang in LANGUAGES:
        told = tomllib.loads(configuration(lang, site(lang)[1]))["project"]
        assert told["theme"]["language"] == lang
        assert told["theme"]["font"] is False
        assert len(told["nav"]) == 1 + len(site(lang)[1])
