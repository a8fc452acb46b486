"""Keys, tokens and passwords out of what is kept: a text of any length, a command, variables, a tree of values.

Names of people and machines stay: they are what its owner reads the text for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.redaction.named_values import is_value
from oomdoctor.redaction.placeholders import PLACEHOLDER, Placeholders
from oomdoctor.redaction.secret_names import names_secret

_KEY_BEGINS, _KEY_ENDS = "-----BEGIN ", "-----END "
_PIECE = 1 << 16
"""Characters that are looked at together, so that a line without an end costs no more memory than a page."""


def redact_secrets(text: str) -> str:
    """Return a text without keys, tokens and passwords, each replaced by a numbered placeholder; it takes linear time."""
    placeholders = Placeholders(only_keys=True)
    return "".join(placeholders.redact(piece) for piece in _pieces(text))


def redact_secrets_in(value: object) -> object:
    """Return a tree of dicts, lists and texts without secrets.

    A text under a key that means a secret is one whatever its form, as is what follows an option such as `--api-key` in a list.
    """
    return without_secrets(value, Placeholders(only_keys=True))


def without_secrets(value: object, placeholders: Placeholders, key: str = "") -> object:
    """Do the same with the placeholders of a whole report; `key` is the name that the value stands under."""
    if isinstance(value, str):
        return placeholders.placeholder("token", value) if is_named_secret(key, value) else placeholders.redact(value)
    if isinstance(value, Mapping):
        return {name: without_secrets(item, placeholders, key) for key, name, item in named_items(value)}
    if isinstance(value, (list, tuple)):
        return [without_secrets(item, placeholders, option) for option, item in with_options(value)]
    return value


def is_named_secret(key: str, value: str) -> bool:
    """Return whether a text is a secret by the name that it stands under."""
    return bool(key) and names_secret(key) and is_value(key, value) and not PLACEHOLDER.search(value)


def named_items(value: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    """Yield what each item of a dict is called, its key and the item; `value` is called what `name` says, as in a container."""
    named = value.get("name", value.get("key"))
    for key, item in value.items():
        yield named if key == "value" and isinstance(named, str) else str(key), key, item


def with_options(items: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Yield each item of a list with the option before it, or an empty text."""
    before = ""
    for item in items:
        yield before, item
        before = item.lstrip("-") if isinstance(item, str) and item.startswith("-") and "=" not in item else ""


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that end with a line, or with a word where a line is very long; a key in several lines stays whole."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _PIECE)
        if end < len(text):
            end = _cut(text, start, end)
        yield text[start:end]
        start = end


def _cut(text: str, start: int, end: int) -> int:
    line = text.rfind("\n", start, end) + 1
    key = text.rfind(_KEY_BEGINS, start, line)
    if key > start and _KEY_ENDS not in text[key:line]:
        return key
    word = text.rfind(" ", start, end) + 1
    return line if line > start else word if word > start else end
