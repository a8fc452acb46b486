"""One look over all rules: what every problem, fix, message and source must have, and whether the printed catalogue is fresh."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.base import TextRecord
from oomdoctor.report.handbook.catalogue import LANGUAGES, TITLES, catalogue

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "catalogue"
CHINESE = re.compile("[\u4e00-\u9fff]")
HALF_WIDTH = re.compile("[\u4e00-\u9fff][,;:?!]|[,;?!][\u4e00-\u9fff]")
"""Latin punctuation at a Chinese character: nobody who writes Chinese puts it there."""


@cache
def book() -> Book:
    return Book(load_pack())


@cache
def pages() -> dict[str, str]:
    return catalogue(book())


def texts() -> list[tuple[str, TextRecord]]:
    """Every text of every rule, with the id of the rule."""
    out = [
        (one.id, text) for one in book().problems.values() for text in (one.title, one.why, *(cite.says for cite in one.cites if cite.says))
    ]
    for name in book().pack.names("fixes"):
        fix = book().fix(name)
        out += [(name, text) for text in (fix.title, fix.how, fix.costs, fix.frees.says if fix.frees else None) if text is not None]
        out += [(name, need.says) for need in fix.needs]
        out += [(name, text) for one in fix.not_this for text in (one.advice, one.why)]
    out += [(name, says) for name in book().pack.names("signatures") if (says := book().signature(name).says) is not None]
    for name in book().pack.names("sources"):
        for claim in book().source(name).claims:
            out += [(f"{name} {claim.id}", text) for text in (claim.says, claim.correction) if text is not None]
    return out


NAMES = [f"{part}.{lang}.md" for part in TITLES for lang in LANGUAGES]


@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_is_fresh(name: str, bless: bool) -> None:
    path = FOLDER / name
    if bless:
        path.write_text(pages()[name], encoding="utf-8")
    fresh = path.is_file() and path.read_text(encoding="utf-8") == pages()[name]
    assert fresh, "the rules changed: python -m oomdoctor rules catalogue docs/catalogue"


def test_no_page_of_the_catalogue_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(pages()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_links_inside_the_catalogue_lead_somewhere(name: str) -> None:
    ids = {page: {f"#{one.replace('.', '')}" for one in re.findall(r"^#+ (\S+)$", text, re.M)} for page, text in pages().items()}
    links = re.findall(r"\]\((\w+\.\w\w\.md)(#[\w-]+)\)", pages()[name])
    assert [(page, anchor) for page, anchor in links if anchor not in ids[page]] == []


def test_every_rule_stands_in_the_catalogue() -> None:
    for part in TITLES:
        assert [one for one in book().pack.names(part) if one not in pages()[f"{part}.zh.md"]] == []


def test_every_text_is_written_in_both_languages() -> None:
    assert [name for name, text in texts() if CHINESE.search(text.en)] == []
    latin = [name for name, text in texts() if not CHINESE.search(text.zh) and re.search(r"[a-z]{3,} [a-z]{3,}", text.zh)]
    assert latin == []


def test_texts_are_calm_and_chinese_has_chinese_punctuation() -> None:
    assert [(name, text.zh) for name, text in texts() if HALF_WIDTH.search(text.zh)] == []
    assert [name for name, text in texts() if re.search(r"[—！]|!(?!=)", text.en + text.zh)] == []


def test_every_problem_has_proof() -> None:
    for one in book().problems.values():
        assert one.examples and one.near_misses and one.cites and (one.fixes or one.severity == "note"), one.id
        assert all(near.expect == "none" for near in one.near_misses), one.id


def test_every_fix_says_where_its_keys_were_read() -> None:
    titles = " ".join(book().source(name).title.lower() for name in book().pack.names("sources"))
    named = [(name, one.source) for name in book().pack.names("fixes") for one in book().fix(name).settings]
    assert [pair for pair in named if re.split(r"[ /]", pair[1].lower().removeprefix("zai-org/"))[0].split(".")[0] not in titles] == []


def test_every_message_has_proof() -> None:
    for name in book().pack.names("signatures"):
        record = book().signature(name)
        assert record.examples and (record.near_misses or record.says) and record.source, name


def test_every_source_is_cited_and_has_a_place() -> None:
    """Articles claim by claim; other documents by a problem or a fix, or named where a key was read."""
    read = {one.source.lower() for name in book().pack.names("fixes") for one in book().fix(name).settings}
    for name in book().pack.names("sources"):
        record = book().source(name)
        first = re.split(r"[ ,:(]", record.title.lower())[0]
        named = any(re.search(rf"(?:^|/|\(){re.escape(first)}\b", one) for one in read) or "llamafactory" in name
        assert record.claims or any(book().citing(name)) or named, name


def test_the_five_articles_are_checked_claim_by_claim() -> None:
    articles = {name: book().source(name).claims for name in book().pack.names("sources") if book().source(name).claims}
    assert {name: len(claims) for name, claims in articles.items()} == {
        "article-glm4-lora-multi-gpu": 15,
        "article-glm4v-vision": 16,
        "article-llamafactory-p4": 14,
        "article-llama31-staircase": 12,
        "article-nvml-assert": 15,
    }
    verdicts = Counter(claim.verdict for claims in articles.values() for claim in claims)
    assert verdicts == {"right": 34, "partly": 20, "wrong": 17, "unverified": 1}


def test_what_is_not_right_is_corrected_and_nothing_else() -> None:
    for name in book().pack.names("sources"):
        for claim in book().source(name).claims:
            assert (claim.correction is not None) is (claim.verdict in ("wrong", "partly")), (name, claim.id)


def test_every_wrong_claim_is_cited_where_it_matters() -> None:
    """Claims that rules are built on in their corrected form: a reader who followed the article must meet the correction."""
    cited = {(cite.source, cite.claim) for one in book().problems.values() for cite in one.cites}
    needed = {"0.6", "1.3", "1.9", "1.15", "2.2", "2.4", "2.6", "2.8", "3.7", "4.6", "4.12", "4.13"}
    assert needed - {claim for _, claim in cited if claim} == set()
