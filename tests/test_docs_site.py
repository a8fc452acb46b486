"""The documentation site's pages, before the generator: every link leads somewhere, each language has all of them, nothing is left out."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

import pytest
from build_docs import configuration
from docs_build.heads import description, finished, front_matter
from docs_build.messages import Message, searched_messages
from docs_build.pages import GUIDES, HOW_WE_KNOW, IS_ENTRY, TUTORIALS, Pages, Section, pages, title_of

from oomdoctor.api import pipeline
from oomdoctor.cli.main import COMMANDS
from oomdoctor.findings.template import FIGURE
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.bug import BUGS
from oomdoctor.report.wire.schemas import REPORTS

ROOT = Path(__file__).parents[1]
LANGUAGES = ("en", "zh")
_LINK = re.compile(r"\]\((?!https?:|mailto:|site:)([^()\s]+)\)")
_SIZE = re.compile(r"\d[\d,.]* ?[KMGT]i?B\b")


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
    assert {path for path in made if not IS_ENTRY.match(path)} - listed == {"index.md"}
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


MESSAGES = [pytest.param(message, id=message.id) for message in searched_messages()]


def test_a_hundred_messages_have_a_page_each_in_both_languages() -> None:
    names = [message.id for message in searched_messages()]
    assert len(names) == len(set(names)) == 100
    assert len({message.title.lower() for message in searched_messages()}) == 100
    for lang in LANGUAGES:
        assert {f"messages/{name}.md" for name in names} <= set(site(lang)[0])


@pytest.mark.parametrize("message", MESSAGES)
def test_a_page_shows_an_example_that_its_rule_recognises(message: Message) -> None:
    example = Book(load_pack()).signature(message.message).examples[message.example].text
    events = pipeline.diagnose_logs(["log"], load_pack(), text=example.encode()).case.events
    assert message.message in {event.signature for event in events}
    for lang in LANGUAGES:
        page = site(lang)[0][f"messages/{message.id}.md"]
        assert example.strip().splitlines()[-1] in page
        assert all(phrase in page for phrase in message.search)
        assert "(site:#log)" in page


@pytest.mark.parametrize("message", MESSAGES)
def test_a_page_begins_with_what_to_try(message: Message) -> None:
    """Right below what the message means, before its example and its causes: at most four lines."""
    for lang, first in (("en", "Try this first"), ("zh", "先试这些")):
        parts = site(lang)[0][f"messages/{message.id}.md"].split("\n## ")
        assert parts[1].startswith(f"{first}\n\n1. ")
        assert 1 <= len(re.findall(r"^\d\. .+", parts[1], re.MULTILINE)) <= 4


@pytest.mark.parametrize("message", MESSAGES)
def test_what_a_page_says_in_general_holds_no_figure_of_its_example(message: Message) -> None:
    example = Book(load_pack()).signature(message.message).examples[message.example].text
    for lang in LANGUAGES:
        general = prose(site(lang)[0][f"messages/{message.id}.md"])
        assert [size for size in _SIZE.findall(example) if size in general] == []


def test_general_texts_of_the_catalogue_hold_no_figure_of_an_example() -> None:
    book = Book(load_pack())
    with_figures = [problem for problem in book.problems.values() if re.search(r"\{[a-z_]+\.", problem.why.en)]
    assert with_figures
    for problem in with_figures:
        assert FIGURE in site("en")[0][f"catalogue/problems/{problem.id}.md"]


def test_every_program_with_known_bugs_has_a_page_that_names_each() -> None:
    for bug in load_pack().records(BUGS):
        assert f"## {bug.id}" in site("en")[0][f"bugs/{bug.program}.md"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_has_a_description_and_no_two_messages_share_one(lang: str) -> None:
    told = {path: description(path, text, lang) for path, text in site(lang)[0].items()}
    assert [path for path, text in told.items() if not 8 <= len(text) <= 156 or re.search(r"[`*]|\]\(", text)] == []
    of_messages = [text for path, text in told.items() if path.startswith("messages/")]
    assert len(of_messages) == len(set(of_messages))


@pytest.mark.parametrize(("path", "url", "expected"), [
    pytest.param("a/b.html", None, ['hreflang="zh" href="../zh/a/b.html"', 'href="../../#log"'], id="without an address, relative"),
    pytest.param("a/b.html", "https://d.example/", ['hreflang="zh" href="https://d.example/zh/a/b.html"'], id="with an address, whole"),
    pytest.param("index.html", None, ['hreflang="zh" href="zh/index.html"', 'href="../#log"'], id="the first page"),
])  # fmt: skip
def test_a_finished_page_names_its_other_language_and_leads_to_the_page(path: str, url: str | None, expected: list[str]) -> None:
    page = '<head><link rel="alternate" href="x" hreflang="zh"></head><a href="site:#log">'
    made = finished(page, path, "en", url, "..")
    assert all(piece in made for piece in expected) and "site:" not in made and made.count('hreflang="zh"') == 1


def test_a_list_of_pages_is_no_answer_of_the_search() -> None:
    assert "exclude" in front_matter("messages/index.md", "# Messages", "en")
    assert "exclude" not in front_matter("index.md", "# What?", "en") + front_matter("messages/oomkilled.md", "# OOMKilled", "en")
