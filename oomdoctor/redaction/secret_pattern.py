"""One form of a secret as a bounded regular expression, and how a text shows whether it is a key or a word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

Place = tuple[str, int, int]
"""What kind of secret stands in a text, from where to where."""

_LETTER_OR_DIGIT = re.compile(r"\d{1,4000}|[^\W\d_]{1,4000}")


class Finder(Protocol):
    """Something that finds secrets of one form where one of `needs` (in lower case) stands in a text."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Pieces of text of which one stands in every text with such a secret."""

    def find(self, text: str) -> Iterator[Place]:
        """Yield the secrets of such a form, in any order."""


class SecretPattern(Struct, frozen=True):
    """A pattern whose named groups (`token`, `user`, `host`, `ip`, `mac`, `email`, `phone`, `id`) are secrets.

    No pattern may match a placeholder (`<host-1>`), or redacting twice would not be the same as once.
    """

    needs: tuple[str, ...]
    pattern: str
    holds: Callable[[str], bool]

    def compiled(self) -> re.Pattern[str]:
        """Return the pattern, compiled when a text first needs it."""
        return re.compile(self.pattern)

    def find(self, text: str) -> Iterator[Place]:
        """Yield the secrets of each match that `holds` takes for one."""
        for match in self.compiled().finditer(text):
            for kind, secret in match.groupdict().items():
                if secret and (is_user if kind == "user" else self.holds)(secret):
                    yield (kind, *match.span(kind))


def always(_: str) -> bool:
    """Take whatever a pattern found."""
    return True


def has_digit(secret: str) -> bool:
    """Whether a name has a digit in it, as few words have."""
    return any(char.isdigit() for char in secret)


def is_random(secret: str) -> bool:
    """Whether letters and figures take turns as they do in keys, and in few names (`Qwen2.5-7B-Instruct`)."""
    return len(secret) >= 8 and len(_LETTER_OR_DIGIT.findall(secret)) > 4


_NO_USERS = frozenset({"root", "shared", "public", "user", "users", "default", "git", "all users"})


def is_user(secret: str) -> bool:
    """Whether a user's name tells anything of a person."""
    return secret.lower() not in _NO_USERS


def pattern(needs: str, *parts: str, holds: Callable[[str], bool] = always) -> SecretPattern:
    """Return a pattern in parts, which is tried where one of `needs`, divided by `|`, stands in a text."""
    return SecretPattern(tuple(needs.split("|")), "".join(parts), holds)
