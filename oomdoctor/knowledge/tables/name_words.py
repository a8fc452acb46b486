"""The words of `rules/tables/name_words.csv`: what stands in the names of models and cards beside their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from oomdoctor.knowledge.tables.csv_table import table


@cache
def name_words(of: str, kind: str) -> Mapping[str, str]:
    """Return the words of one kind, the longest first, each with what it means; `of` is `model` or `card`."""
    rows = [row for row in table("name_words") if (row["of"], row["kind"]) == (of, kind)]
    words = {word: row["means"] for row in rows for word in row["words"].split("|")}
    return dict(sorted(words.items(), key=lambda pair: -len(pair[0])))


@cache
def any_word(of: str, *kinds: str) -> re.Pattern[str]:
    """Return what finds a word of these kinds; a Latin word ends where its letters end, a Chinese one may touch others."""
    words = sorted((word for kind in kinds for word in name_words(of, kind)), key=len, reverse=True)
    latin, others = (
        "|".join(re.escape(word).replace(r"\ ", r"[\s-]+") for word in words if word.isascii() is ascii) for ascii in (True, False)
    )
    # The ends are written once, not with each word: that compiles several times as fast.
    return re.compile("|".join(part for part in (rf"(?<![a-z])(?:{latin})(?![a-z])" if latin else "", others) if part), re.IGNORECASE)
