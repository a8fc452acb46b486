"""Which names mean a secret: `hub_token` and `apiKey` do, `pad_token` and `primary_key` do not (rules/tables/secret_names.csv)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from msgspec import Struct

from oomdoctor.knowledge.tables.csv_table import table

_BETWEEN = re.compile(r"[^A-Za-z0-9]{1,200}|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORKING_FOLDER = "PWD"
"""The one variable of every shell that has a secret's name and is none."""


class SecretWord(Struct, frozen=True):
    """A word that means a secret, but for what may stand before and after it; None where anything may."""

    word: str
    only_after: frozenset[str] | None
    never_after: frozenset[str]
    only_before: frozenset[str] | None
    never_before: frozenset[str]

    def fits(self, before: str, after: list[str]) -> bool:
        """Return whether it means a secret between these words."""
        if before in self.never_after or (self.only_after is not None and before not in self.only_after):
            return False
        return all(word not in self.never_before and (self.only_before is None or word in self.only_before) for word in after)


@cache
def secret_words() -> tuple[SecretWord, ...]:
    """Return the words of the table."""
    return tuple(
        SecretWord(
            row["word"],
            frozenset(row["only_after"].split("|")) if row["only_after"] else None,
            frozenset(filter(None, row["never_after"].split("|"))),
            frozenset(row["only_before"].split("|")) if row["only_before"] else None,
            frozenset(filter(None, row["never_before"].split("|"))),
        )
        for row in table("secret_names")
    )


@lru_cache(maxsize=4096)
def names_secret(name: str) -> bool:
    """Return whether a value that stands behind this name is a secret, whatever its form."""
    if name == _WORKING_FOLDER:
        return False
    words = [word for word in _BETWEEN.split(name) if word]
    folded = [word.lower() for word in words]
    return any(_is_secret(folded, at) for at in range(len(folded)))


def _is_secret(words: list[str], at: int) -> bool:
    after = [word for word in words[at + 1 :] if not word.isdigit()]
    word = words[at].rstrip("0123456789")
    for secret in secret_words():
        if not word.endswith(secret.word):
            continue
        glued = word.removesuffix(secret.word)
        if secret.fits(glued or (words[at - 1] if at else ""), after):
            return True
    return False
