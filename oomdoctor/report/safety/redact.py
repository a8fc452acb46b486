"""Secrets out of a report, whatever it is before it has a format: a document, a text, a tree of values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import cast

from oomdoctor.redaction.people_and_machines import is_host
from oomdoctor.redaction.placeholders import PLACEHOLDER, Placeholders
from oomdoctor.redaction.redact_secrets import named_items, with_options, without_secrets
from oomdoctor.redaction.secret_pattern import is_user
from oomdoctor.report.document import Document, map_text

_VERSION = re.compile(r"\d{1,3}(?:\.\d{1,4}){3}")
_KEYS: Mapping[str, str] = {"host": "host", "hostname": "host", "node": "host", "master_addr": "host", "user": "user", "ip": "ip"}


def redact(document: Document, *, only_keys: bool = False) -> Document:
    """Return the document without secrets; with `only_keys` people, machines and paths stay."""
    placeholders = Placeholders(only_keys=only_keys)
    texts: list[str] = []

    def collect(text: str) -> str:
        texts.append(text)
        return text

    map_text(document, collect)
    placeholders.learn(texts)
    return map_text(document, placeholders.redact)


def redact_text(text: str, *, only_keys: bool = False) -> str:
    """One text without secrets; with `only_keys` people, machines and paths stay."""
    placeholders = Placeholders(only_keys=only_keys)
    placeholders.learn([text])
    return placeholders.redact(text)


def last_part(path: str) -> str:
    """Return the name at the end of a path; the whole of one that only as a whole shows a secret, or nothing would take that out later."""
    name = path.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    return name if redact_text(path).rstrip("/\\").endswith(name) else path


def redact_values(value: dict[str, object], *, only_keys: bool = False) -> dict[str, object]:
    """Take the secrets out of the texts of a tree of dicts, lists and tuples; a text under the key `host` is one in any case.

    With `only_keys` people, machines and paths stay.
    """
    placeholders = Placeholders(only_keys=only_keys)
    placeholders.learn(_texts(value))
    if only_keys:
        return cast(dict[str, object], without_secrets(value, placeholders))
    for kind, secret in _keyed(value):
        placeholders.placeholder(kind, secret)
    return cast(dict[str, object], _replaced_values(value, placeholders))


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if not _is_version(key, item):
                yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _is_version(key: str, value: object) -> bool:
    """Whether four numbers are the version of a package (`12.1.3.1` of cuBLAS) and no address."""
    return key == "version" and isinstance(value, str) and _VERSION.fullmatch(value) is not None


def _keyed(value: object) -> Iterable[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _KEYS and isinstance(item, str) and _is_secret(_KEYS[key], item):
                yield _KEYS[key], item
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from _keyed(item)


def _is_secret(kind: str, text: str) -> bool:
    if not text or PLACEHOLDER.search(text):
        return False
    return is_host(text) if kind == "host" else is_user(text)


def _replaced_values(value: object, placeholders: Placeholders, key: str = "") -> object:
    if isinstance(value, str):
        if _is_version(key, value):
            return value
        if key in _KEYS and _is_secret(_KEYS[key], value):
            return placeholders.placeholder(_KEYS[key], value)
        return without_secrets(value, placeholders, key)
    if isinstance(value, dict):
        return {name: _replaced_values(item, placeholders, key) for key, name, item in named_items(value)}
    return [_replaced_values(item, placeholders, key) for key, item in with_options(value)] if isinstance(value, (list, tuple)) else value
