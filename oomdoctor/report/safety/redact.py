"""Secrets out of a report: names, hosts, addresses and keys become numbered placeholders, the same one for the same secret.

Redacting twice changes nothing: no rule matches a placeholder, and a rule that still matched would be applied again. A
host or user that one line names is replaced in the other lines as well, where it stands as a whole word or a part of a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import cast

from oomdoctor.report.document import Document, map_text
from oomdoctor.report.safety.plain_view import PlainView, plain_views
from oomdoctor.report.safety.secret_patterns import KEYS, RULES, SecretPattern, has_digit, is_host, is_random, is_user

_PLACEHOLDER = re.compile(r"<(user|host|ip|mac|email|token|phone|id)-(\d{1,6})>")
_CONTINUED = r"(?P<token><(?:token|id)-\d{1,6}>)(?: |\n[ \t|>]{0,8})(?P<rest>-?[A-Za-z0-9][A-Za-z0-9+/_.%~-]{5,4000}={0,2})(?![\w=])"
"""A token that a terminal cut at its edge, and what became of the cut on one line."""
_VERSION = re.compile(r"\d{1,3}(?:\.\d{1,4}){3}")
_ROUNDS = 12
_KEYS: Mapping[str, str] = {"host": "host", "hostname": "host", "node": "host", "master_addr": "host", "user": "user", "ip": "ip"}


class Placeholders:
    """The secrets of one report and what stands for each."""

    def __init__(self, rules: Sequence[SecretPattern] = RULES) -> None:
        self._rules = rules
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._done: dict[str, str] = {}
        self._without: set[str] = set()
        """Texts in which no rule finds a secret, whatever is known."""
        self._elsewhere: tuple[int, re.Pattern[str] | None] = (0, None)

    def learn(self, texts: Iterable[str]) -> None:
        """Name the secrets of all texts in their order, so that one may be recognised in a line before the one that names it."""
        texts = list(dict.fromkeys(texts))
        for text in texts:
            for kind, number in _PLACEHOLDER.findall(text):
                self._counts[kind] = max(self._counts.get(kind, 0), int(number))
        everything = "\n".join(texts).lower()
        views = [view.text.lower() for text in texts for view in plain_views(text)]
        rules = [rule for rule in self._rules if any(need in part for need in rule.needs for part in (everything, *views))]
        self._without.update(text for text in texts if self._by_rules(text, rules) == text)
        self._done.clear()

    def redact(self, text: str) -> str:
        """`text` without the secrets that are known or that show themselves."""
        known = self._done.get(text)
        if known is None:
            known = self._done[text] = self._until_stable(text)
        return known

    def placeholder(self, kind: str, secret: str) -> str:
        """Return what stands for a secret, a new number for a new one."""
        name = self._names.get((kind, secret))
        if name is None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            name = self._names[kind, secret] = f"<{kind}-{self._counts[kind]}>"
        return name

    def _until_stable(self, text: str) -> str:
        for _ in range(_ROUNDS):
            changed = self._known_elsewhere(text if text in self._without else self._by_rules(text))
            if changed == text:
                break
            text = changed
        return text

    def _by_rules(self, text: str, rules: Iterable[SecretPattern] | None = None) -> str:
        rules = self._rules if rules is None else rules
        lower = text.lower()
        for view in plain_views(text):
            text = self._through(view, text, rules)
            if text.lower() != lower:
                return self._by_rules(text, rules)  # the places of the other views have moved
        for rule in rules:
            if any(map(lower.__contains__, rule.needs)):
                text = rule.compiled().sub(partial(self._replaced, rule), text)
        return re.sub(_CONTINUED, _without_rest, text) if "<token-" in text or "<id-" in text else text

    def _through(self, view: PlainView, text: str, rules: Iterable[SecretPattern]) -> str:
        """Return the text without the secrets that its view shows: those of one rule, the last first; the rest is for the next round."""
        lower = view.text.lower()
        for rule in rules:
            if not any(map(lower.__contains__, rule.needs)):
                continue
            secrets = [part for match in rule.compiled().finditer(view.text) for part in _secrets(rule, match)]
            for kind, start, end in sorted(secrets, key=itemgetter(1), reverse=True):
                first, last = view.span(start, end)
                text = text[:first] + self.placeholder(kind, view.text[start:end]) + text[last:]
            if secrets:
                break
        return text

    def _replaced(self, rule: SecretPattern, match: re.Match[str]) -> str:
        """Replace the groups of a match, the last first so that the places of the others stay right."""
        whole, begin = match[0], match.start()
        for kind, start, end in _secrets(rule, match):
            whole = whole[: start - begin] + self.placeholder(kind, match[kind]) + whole[end - begin :]
        return whole

    def _known_elsewhere(self, text: str) -> str:
        if self._elsewhere[0] != len(self._names):
            self._elsewhere = len(self._names), _anywhere(self._names)
        pattern = self._elsewhere[1]
        if pattern is None:
            return text
        return pattern.sub(lambda match: self._names["host" if match["host"] else "user", match["host"] or match["user"]], text)


def _secrets(rule: SecretPattern, match: re.Match[str]) -> list[tuple[str, int, int]]:
    """Return the secrets of a match with their places, the last first."""
    kinds = sorted((kind for kind, secret in match.groupdict().items() if secret), key=match.start, reverse=True)
    return [(kind, *match.span(kind)) for kind in kinds if (is_user if kind == "user" else rule.holds)(match[kind])]


def _without_rest(match: re.Match[str]) -> str:
    """Return the placeholder of a token alone where what follows a line's end or a blank is the rest of it."""
    return match["token"] if is_random(match["rest"]) else match[0]


def redact(document: Document, *, only_keys: bool = False) -> Document:
    """Return the document without secrets; with `only_keys` people, machines and paths stay."""
    placeholders = Placeholders(KEYS if only_keys else RULES)
    texts: list[str] = []

    def collect(text: str) -> str:
        texts.append(text)
        return text

    map_text(document, collect)
    placeholders.learn(texts)
    return map_text(document, placeholders.redact)


def redact_text(text: str, *, only_keys: bool = False) -> str:
    """One text without secrets; with `only_keys` people, machines and paths stay."""
    placeholders = Placeholders(KEYS if only_keys else RULES)
    placeholders.learn([text])
    return placeholders.redact(text)


def redact_values(value: dict[str, object], *, only_keys: bool = False) -> dict[str, object]:
    """Take the secrets out of the texts of a tree of dicts, lists and tuples; a text under the key `host` is one in any case.

    With `only_keys` people, machines and paths stay.
    """
    placeholders = Placeholders(KEYS if only_keys else RULES)
    placeholders.learn(_texts(value))
    if only_keys:
        return cast(dict[str, object], _mapped(value, placeholders.redact))
    for kind, secret in _keyed(value):
        placeholders.placeholder(kind, secret)
    return {key: _replaced_values(item, placeholders, key) for key, item in value.items()}


def _mapped(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return [_mapped(item, change) for item in value] if isinstance(value, (list, tuple)) else value


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
    if not text or _PLACEHOLDER.search(text):
        return False
    return is_host(text) if kind == "host" else is_user(text)


def _replaced_values(value: object, placeholders: Placeholders, key: str = "") -> object:
    if isinstance(value, str):
        if _is_version(key, value):
            return value
        if key in _KEYS and _is_secret(_KEYS[key], value):
            return placeholders.placeholder(_KEYS[key], value)
        return placeholders.redact(value)
    if isinstance(value, dict):
        return {name: _replaced_values(item, placeholders, name) for name, item in value.items()}
    return [_replaced_values(item, placeholders) for item in value] if isinstance(value, (list, tuple)) else value


def _anywhere(names: Iterable[tuple[str, str]]) -> re.Pattern[str] | None:
    """Known hosts as whole words, known users as a part of a path; words that could mean anything are left alone."""
    names = list(names)
    hosts = [re.escape(secret) for kind, secret in names if kind == "host" and len(secret) >= 4 and (has_digit(secret) or "-" in secret)]
    users = [re.escape(secret) for kind, secret in names if kind == "user" and len(secret) >= 3]
    parts = []
    # The longer name first: `node10` before `node1`.
    for kind, secrets, shape in (
        ("host", hosts, r"(?<![\w<-])(?P<host>{})(?![\w>-])"),
        ("user", users, r"(?<=[/\\])(?P<user>{})(?=[/\\])"),
    ):
        chosen = "|".join(sorted(secrets, key=len, reverse=True)[:200])
        parts.append(shape.format(chosen) if secrets else f"(?P<{kind}>(?!))")
    return re.compile("|".join(parts)) if hosts or users else None
