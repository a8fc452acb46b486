"""The words of `rules/tables/stated_words.csv`: how people label settings, name programs, and speak of what is not their run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from oomdoctor.knowledge.tables.csv_table import table


@cache
def labels() -> Mapping[str, str]:
    """Return label -> what stands behind it, in small letters with blanks between words."""
    return {word: row["means"] for row in table("stated_words") if row["of"] == "label" for word in row["words"].split("|")}


@cache
def programs() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the programs in the order in which they count, each with what finds its name: a trainer before what it is built on."""
    return tuple((row["means"], _finds(row["words"])) for row in table("stated_words") if row["of"] == "program")


@cache
def sentences(of: str) -> re.Pattern[str]:
    """Return what finds that a sentence speaks of something `tried`, `supposed`, or of an `other` run."""
    return next(_finds(row["words"]) for row in table("stated_words") if (row["of"], row["means"]) == ("sentence", of))


def program_in(text: str) -> str | None:
    """Return the first program that a text names."""
    return next((name for name, form in programs() if form.search(text)), None)


def program_place(text: str) -> int:
    """Return where that name begins; the end of the text where there is none."""
    return next((match.start() for _, form in programs() if (match := form.search(text))), len(text))


def _finds(words: str) -> re.Pattern[str]:
    """Return what finds any of these words; between the parts of one may stand a blank, a hyphen, a dot or nothing."""
    parts = (re.escape(word).replace(r"\ ", r"[\s._-]{0,2}") for word in sorted(words.split("|"), key=len, reverse=True))
    latin: list[str] = []
    others: list[str] = []
    for part in parts:
        (latin if part.isascii() else others).append(part)
    bounded = [rf"(?<![\w/])(?:{'|'.join(latin)})(?![\w])"] if latin else []
    return re.compile("|".join([*bounded, *others]), re.IGNORECASE)
