"""Tokens that show by themselves who made them: the prefix, the alphabet and the length that their makers publish.

The makers stand in rules/tables/token_forms.csv.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.redaction.secret_pattern import SecretPattern, has_digit, is_random, pattern

_LONGEST = 4000
_SHORT = 8
_SURE = 14
"""So many signs with a figure among them are no word behind a prefix, even if a maker's tokens are longer."""
_PREFIX = 3
"""A shorter prefix tells nothing without a whole token behind it."""


def token_patterns() -> tuple[SecretPattern, ...]:
    """Return a pattern for each prefix, the longest first: a shorter one may stand in it (`secret_` in `sb_secret_`)."""
    forms = [(prefix, row) for row in table("token_forms") for prefix in row["begins"].split("|")]
    forms.sort(key=lambda form: -len(form[0]))
    begins = [prefix for prefix, row in forms if not row["before"] and len(prefix) >= _PREFIX]
    return (_cut_tokens(begins), *(_pattern(*form) for form in forms))


def _cut_tokens(prefixes: Sequence[str]) -> SecretPattern:
    """Return the pattern of what is left of a token where a text was cut in it."""
    begins = "|".join(map(re.escape, prefixes))
    return pattern("…|...", rf"(?<![A-Za-z0-9])(?P<token>(?:{begins})[A-Za-z0-9_+/=-]{{1,{_LONGEST}}})(?=…|\.\.\.)")


def _pattern(prefix: str, row: Row) -> SecretPattern:
    least, body = int(re.split(r"[-+]", row["length"])[0]), f"[{row['alphabet']}]"
    if row["before"]:  # so much form by itself that a token which a terminal cut shows itself too
        return pattern(prefix.lower(), rf"(?P<token>{row['before']}{re.escape(prefix)}{body}{{{min(least, _SURE)},{_LONGEST}}})")
    begin = _begin(prefix)
    if len(prefix) < _PREFIX or least <= _SHORT:
        return pattern(prefix.lower(), rf"(?P<token>{begin}{body}{{{least},{_LONGEST}}})")
    return pattern(prefix.lower(), rf"(?P<token>{begin}{body}{{{_SHORT},{_LONGEST}}})", holds=_is_token(len(prefix), least))


def _begin(prefix: str) -> str:
    """Return a prefix where no word goes on; `\\n` in JSON and a colour are no letters before it.

    What must not stand before it is asked for behind it: `re` looks for the prefix first, ten times as fast.
    """
    literal = re.escape(prefix)
    return rf"{literal}(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal})|(?<=\x1b\[\dm{literal}))"


def _is_token(prefix: int, least: int) -> Callable[[str], bool]:
    """Return whether a text has a token's length, or is a shorter one and no word (`hf_transfer`, `sk-learn`)."""

    def holds(secret: str) -> bool:
        body = secret[prefix:]
        return len(body) >= least or (len(body) >= _SURE and has_digit(body)) or is_random(body)

    return holds
