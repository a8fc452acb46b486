"""All that is looked for in a text, and in which order.

A value that a name or a place tells goes whole, before a part of it is known by its form; keys before names, as a part of one may
also look like the name of a host.
"""

from __future__ import annotations

from functools import cache

from oomdoctor.redaction.key_places import PLACES, WHOLE_PLACES
from oomdoctor.redaction.named_values import NamedValues
from oomdoctor.redaction.people_and_machines import ADDRESSES, MACHINES, PEOPLE
from oomdoctor.redaction.secret_names import secret_words
from oomdoctor.redaction.secret_pattern import Finder
from oomdoctor.redaction.token_forms import token_patterns


@cache
def key_rules() -> tuple[Finder, ...]:
    """Return those of keys, tokens and passwords alone."""
    return (*WHOLE_PLACES, named_values(), *token_patterns(), *PLACES)


@cache
def named_values() -> Finder:
    """Return the rule of values behind names."""
    return NamedValues(_words())


@cache
def quoted_values() -> Finder:
    """Return the rule that comes before anything is undone in a text: where a value ends the escapes in it say."""
    return NamedValues(_words(), only_quoted=True)


@cache
def all_rules() -> tuple[Finder, ...]:
    """Return those of keys, and those of people, machines and addresses."""
    return (*key_rules(), *PEOPLE, *MACHINES, *ADDRESSES)


def _words() -> tuple[str, ...]:
    return tuple(dict.fromkeys(secret.word for secret in secret_words()))
