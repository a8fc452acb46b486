"""The texts of the page: both languages say the same things, and every text that is asked for is there and is used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "site"
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in [SITE / "index.html", *sorted((SITE / "app").glob("*.js"))])
TEXTS = {lang: json.loads((SITE / "app" / f"strings.{lang}.json").read_text(encoding="utf-8")) for lang in ("en", "zh")}
ASKED = set(re.findall(r"""(?:\bt\(|data-t(?:-label|-placeholder)?=|choice: |\? |: |, )["']([a-z]+(?:[.-][\w-]+)+)["']""", SOURCES))
BUILT = re.findall(r"t\(`([\w.]*)\$\{", SOURCES)
"""The beginnings of keys that are put together where they are asked for."""


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def test_both_languages_have_the_same_keys_in_the_same_order() -> None:
    assert list(TEXTS["en"]) == list(TEXTS["zh"])


@pytest.mark.parametrize("key", TEXTS["en"])
def test_both_languages_have_the_same_placeholders(key: str) -> None:
    assert placeholders(TEXTS["en"][key]) == placeholders(TEXTS["zh"][key])


def test_every_text_that_is_asked_for_is_there() -> None:
    wanted = {key for key in ASKED if key.split(".")[0] in {known.split(".")[0] for known in TEXTS["en"]} and "." in key}
    assert len(wanted) > 50
    assert wanted - set(TEXTS["en"]) - {"oomdoctor.lang"} == set()


def test_no_text_is_left_over() -> None:
    unused = [
        key
        for key in TEXTS["en"]
        if key not in ASKED and not any(key.startswith(begin) for begin in BUILT if begin) and f'"{key}"' not in SOURCES
    ]
    assert unused == []


def test_the_chinese_texts_are_chinese() -> None:
    same = [key for key, text in TEXTS["zh"].items() if text == TEXTS["en"][key] and re.search(r"[a-z]{3} [a-z]{3}", text)]
    assert [key for key in same if key != "log.placeholder"] == []


def test_nothing_is_inline_in_the_page() -> None:
    page = (SITE / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page) == []
    assert "unsafe-inline" not in page and "'unsafe-eval'" not in page
