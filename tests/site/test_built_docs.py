"""The documents as they are published: each page's head, every link, and their own search (OOMDOCTOR_DOCS names a folder of them)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from docs_build.messages import searched_messages

DOCS = Path(os.environ.get("OOMDOCTOR_DOCS", "/nowhere"))
SEARCH = Path(__file__).parent / "docs_search.mjs"
LANGUAGES = ("", "zh/")
FEWEST = 95
"""Messages of the hundred whose page is the first for each phrase."""

pytestmark = pytest.mark.skipif(not (DOCS / "search.json").is_file(), reason="OOMDOCTOR_DOCS names no built documents")


class Page(HTMLParser):
    """The title, what the head says, the links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.named: dict[str, str] = {}
        self.languages: dict[str, str] = {}
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.title, self._in_title = "", False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_title = tag == "title"
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "meta":
            self.named[given.get("name", "")] = given.get("content", "")
        elif tag == "link" and "hreflang" in given:
            self.languages[given["hreflang"]] = given["href"]
        elif tag == "link" and given.get("rel") == "canonical":
            self.named["canonical"] = given["href"]
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title, self._in_title = data.strip(), False


@cache
def built() -> dict[str, Page]:
    return {path.relative_to(DOCS).as_posix(): Page(path) for path in sorted(DOCS.rglob("*.html")) if path.name != "404.html"}


def test_every_page_has_a_title_a_description_and_its_other_language() -> None:
    wrong = [
        path
        for path, page in built().items()
        if len(page.title) < 8 or not 8 <= len(page.named.get("description", "")) <= 160 or set(page.languages) != {"en", "zh", "x-default"}
    ]
    assert wrong == []


def test_titles_of_messages_are_the_messages() -> None:
    for message in searched_messages():
        for folder in LANGUAGES:
            assert message.title in built()[f"{folder}messages/{message.id}.html"].title


def test_the_map_of_each_language_names_every_page_at_its_canonical_address() -> None:
    if not any(page.named.get("canonical") for page in built().values()):
        pytest.skip("built without --url")
    for folder in LANGUAGES:
        listed = set(re.findall(r"<loc>(.*?)</loc>", (DOCS / folder / "sitemap.xml").read_text(encoding="utf-8")))
        pages = {path: page for path, page in built().items() if path.startswith("zh/") == bool(folder)}
        assert {page.named["canonical"] for page in pages.values()} == listed


def test_no_link_is_broken() -> None:
    broken = []
    for path, page in built().items():
        for link in page.links:
            target, anchor = urldefrag(urljoin(f"/docs/{path}", link))
            if re.match(r"[a-z]+:", link) or target in ("/", "/index.html"):  # elsewhere, or the page of the browser above
                continue
            to = unquote(target).removeprefix("/docs/") or "index.html"
            to = f"{to}index.html" if to.endswith("/") else to
            if (
                (to.endswith(".html") and to not in built())
                or not (DOCS / to).is_file()
                or (anchor and to in built() and unquote(anchor) not in built()[to].anchors)
            ):
                broken.append(f"{path}: {link}")
    assert broken == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("folder", LANGUAGES, ids=["en", "zh"])
def test_the_search_gives_the_page_of_a_message_first(folder: str) -> None:
    phrases = [phrase for message in searched_messages() for phrase in (message.title, *message.search)]
    done = subprocess.run(
        ["node", str(SEARCH), str(DOCS / folder)], input=json.dumps(phrases), capture_output=True, encoding="utf-8", check=True
    )
    answers = json.loads(done.stdout)
    missed = [
        (message.id, phrase, answers[phrase][:2])
        for message in searched_messages()
        for phrase in (message.title, *message.search)
        if not answers[phrase] or urldefrag(answers[phrase][0])[0] != f"messages/{message.id}.html"
    ]
    assert len({name for name, _, _ in missed}) <= len(searched_messages()) - FEWEST, missed
