"""One language: its texts, its marks between words and sentences, and its counts."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from oomdoctor.case.text import Text
from oomdoctor.report.wording.phrases import bare


class Counted(Struct, frozen=True):
    """A text with a count `n` in it: English for one, English for any other number, and Chinese."""

    singular: str
    plural: str
    zh: str


class Wording:
    """Say texts in one language. The command line makes one and passes it to whatever writes."""

    def __init__(self, lang: str) -> None:
        is_chinese = lang == "zh"
        self.lang = "zh" if is_chinese else "en"
        self.stop = "。" if is_chinese else "."
        self.blank = "" if is_chinese else " "
        """What stands between two sentences."""
        self.comma = "，" if is_chinese else ", "
        self.item_comma = "、" if is_chinese else ", "
        """What stands between names or numbers of one list."""
        self.semicolon = "；" if is_chinese else "; "
        self.colon = "：" if is_chinese else ": "

    @property
    def is_chinese(self) -> bool:
        """Whether the language is Chinese."""
        return self.lang == "zh"

    def say(self, text: Text, /, **values: object) -> str:
        """Return a text, filled in; values are never read as a template."""
        template = text.get(self.lang)
        return template.format_map(values) if values else template

    def count(self, text: Counted, n: int, /, **values: object) -> str:
        """Return a text with a count, in its singular or plural."""
        return self.say(Text(text.singular if n == 1 else text.plural, text.zh), n=n, **values)

    def aside(self, text: str) -> str:
        """Return a text in brackets, to go on after a word."""
        return f"（{text}）" if self.is_chinese else f" ({text})"

    def sentence(self, text: str) -> str:
        """Return a text with one full stop."""
        return bare(text) + self.stop

    def first_sentences(self, text: str, most: int) -> str:
        """Return the first sentences of a text."""
        end = self.stop + self.blank
        return bare(end.join(text.split(end)[:most])) + self.stop if text.count(end) >= most else text

    def listed(self, texts: Iterable[str]) -> str:
        """Join titles and sentences, each without its full stop."""
        return self.semicolon.join(map(bare, texts))
