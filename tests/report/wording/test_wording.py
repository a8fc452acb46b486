"""The texts of the reports: in both languages, calm, with the same values, and how a language joins them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.text import Text
from oomdoctor.report import wording as package
from oomdoctor.report.issue.missing_info import QUESTIONS
from oomdoctor.report.wording.wording import Counted, Wording

SILENT = {"labels.ONCE", "labels.SURE.certain"}
"""Texts that are nothing in one of the languages."""


def texts(name: str, value: object) -> Iterator[tuple[str, Text | Counted]]:
    if isinstance(value, (Text, Counted)):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts(f"{name}.{key}", inner)
    elif isinstance(value, tuple):
        for number, inner in enumerate(value):
            yield from texts(f"{name}.{number}", inner)


TEXTS = {
    name: text
    for module in iter_modules(package.__path__)
    for attribute, value in vars(import_module(f"{package.__name__}.{module.name}")).items()
    for name, text in texts(f"{module.name}.{attribute}", value)
} | {
    f"missing_info.{number}.{name}": text
    for number, question in enumerate(QUESTIONS)
    for name, text in (("what", question.what), ("how", question.how))
}


def forms(text: Text | Counted) -> tuple[str, ...]:
    return (text.en, text.zh) if isinstance(text, Text) else (text.singular, text.plural, text.zh)


def test_every_text_is_written_in_both_languages() -> None:
    assert [name for name, text in TEXTS.items() if not all(forms(text)) and name not in SILENT] == []


def test_every_text_is_calm() -> None:
    assert [name for name, text in TEXTS.items() if {"!", "！", "—"} & set("".join(forms(text)))] == []


def test_every_text_has_the_same_values_in_both_languages() -> None:
    values = {name: [set(re.findall(r"\{(\w+)", form)) - {"n", "more"} for form in forms(text)] for name, text in TEXTS.items()}
    assert [name for name, fields in values.items() if any(one != fields[0] for one in fields)] == []


@pytest.mark.parametrize(("n", "lang", "text"), [
    pytest.param(1, "en", "1 file", id="one"), pytest.param(2, "en", "2 files", id="two"), pytest.param(0, "en", "0 files", id="none"),
    pytest.param(1, "zh", "1 个文件", id="one in Chinese"), pytest.param(2, "zh", "2 个文件", id="two in Chinese"),
])  # fmt: skip
def test_a_count_has_its_plural(n: int, lang: str, text: str) -> None:
    assert Wording(lang).count(Counted("{n} file", "{n} files", "{n} 个文件"), n) == text


def test_values_are_never_read_as_a_template() -> None:
    assert Wording("en").say(Text("{name} was not read", "{name}"), name="{0}.log") == "{0}.log was not read"
    assert Wording("en").say(Text('{"stage": 3}', "")) == '{"stage": 3}'


@given(st.lists(st.text("ab12 显存", min_size=1, max_size=8).filter(str.strip), min_size=1, max_size=5), st.sampled_from(["en", "zh"]))
def test_the_first_sentences_end_like_sentences(sentences: list[str], lang: str) -> None:
    wording = Wording(lang)
    text = wording.blank.join(wording.sentence(sentence.strip()) for sentence in sentences)
    first = wording.first_sentences(text, 2)
    assert text.startswith(first) and first.endswith(wording.stop)
