"""Names, hosts, addresses and keys become numbered placeholders, the same one for the same secret.

Redacting twice changes nothing: no rule matches a placeholder, and a rule that still matched would be applied again. A
host or user that one line names is replaced in the other lines as well, where it stands as a whole word or a part of a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from oomdoctor.redaction.plain_view import PlainView, plain_views
from oomdoctor.redaction.rules import all_rules, key_rules, named_values, quoted_values
from oomdoctor.redaction.secret_pattern import Finder, Place, has_digit, is_random

PLACEHOLDER = re.compile(r"<(user|host|ip|mac|email|token|phone|id)-(\d{1,6})>")
_CONTINUED = r"(?P<token><(?:token|id)-\d{1,6}>)(?: |\n[ \t|>]{0,8})(?P<rest>-?[A-Za-z0-9][A-Za-z0-9+/_.%~-]{5,4000}={0,2})(?![\w=])"
"""A token that a terminal cut at its edge, and what became of the cut on one line."""
_CUT = 10
"""So many signs of a token tell it, where the rest is cut off."""
_ROUNDS = 12


class Placeholders:
    """The secrets of one report and what stands for each."""

    def __init__(self, *, only_keys: bool = False) -> None:
        self._rules = key_rules() if only_keys else all_rules()
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._done: dict[str, str] = {}
        self._learned: frozenset[str] = frozenset()
        self._likely: Sequence[Finder] = ()
        """The rules of which something stands in one of the learned texts."""
        self._without: set[str] = set()
        """Texts in which no rule finds a secret, whatever is known."""
        self._elsewhere: tuple[int, re.Pattern[str] | None] = (0, None)

    def learn(self, texts: Iterable[str]) -> None:
        """Name the secrets of all texts in their order, so that one may be recognised in a line before the one that names it."""
        texts = list(dict.fromkeys(texts))
        for text in texts:
            for kind, number in PLACEHOLDER.findall(text):
                self._counts[kind] = max(self._counts.get(kind, 0), int(number))
        everything = "\n".join(texts).lower()
        views = [view.text.lower() for text in texts for view in plain_views(text)]
        whole = "\n".join((everything, *views))
        self._learned = frozenset(texts)
        self._likely = [rule for rule in self._rules if any(map(whole.__contains__, rule.needs))]
        self._without.update(text for text in texts if self._by_rules(text, self._likely) == text)
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
        rules = self._likely if text in self._learned else self._rules
        for _ in range(_ROUNDS):
            changed = self._known_elsewhere(text if text in self._without else self._by_rules(text, rules))
            if changed == text:
                break
            text = changed
        return text

    def _by_rules(self, text: str, rules: Sequence[Finder]) -> str:
        lower = text.lower()
        if "\\" in text or "%" in text:
            # Where a value ends is said by the text as it stands: a blank that `%20` means ends none.
            rule = quoted_values() if "%" not in text or "\x1b" in text else named_values()
            text = self._replaced(text, rule)
            lower = text.lower()
        for view in plain_views(text):
            text = self._through(view, text, rules)
            if text.lower() != lower:
                return self._by_rules(text, rules)  # the places of the other views have moved
        for rule in rules:
            if any(map(lower.__contains__, rule.needs)):
                text = self._replaced(text, rule)
        return re.sub(_CONTINUED, _without_rest, text) if "<token-" in text or "<id-" in text else text

    def _through(self, view: PlainView, text: str, rules: Sequence[Finder]) -> str:
        """Return the text without the secrets that its view shows: those of one rule, the last first; the rest is for the next round."""
        lower = view.text.lower()
        for rule in rules:
            if not any(map(lower.__contains__, rule.needs)):
                continue
            secrets = list(_apart(rule, view.text))
            for kind, start, end in reversed(secrets):
                first, last = view.span(start, end)
                text = text[:first] + self.placeholder(kind, view.text[start:end]) + text[last:]
            if secrets:
                break
        return text

    def _replaced(self, text: str, rule: Finder) -> str:
        """Return the text without the secrets of one rule."""
        out, at = [], 0
        for kind, start, end in _apart(rule, text):
            out += [text[at:start], self.placeholder(kind, text[start:end])]
            at = end
        return "".join([*out, text[at:]]) if out else text

    def _known_elsewhere(self, text: str) -> str:
        if self._elsewhere[0] != len(self._names):
            self._elsewhere = len(self._names), _anywhere(self._names)
        pattern = self._elsewhere[1]
        if pattern is None:
            return text
        return pattern.sub(self._known, text)

    def _known(self, match: re.Match[str]) -> str:
        """Return what stands for a host or a user, or for the token of which this is the beginning."""
        if match["cut"]:
            return next(name for (kind, secret), name in self._names.items() if kind == "token" and match["cut"].startswith(secret[:_CUT]))
        return self._names["host" if match["host"] else "user", match["host"] or match["user"]]


def _apart(rule: Finder, text: str) -> Iterator[Place]:
    """Yield the secrets of one rule in their order; of two that overlap the first, as the other is found in the next round."""
    last = 0
    for place in sorted(rule.find(text), key=itemgetter(1)):
        if place[1] >= last:
            yield place
            last = place[2]


def _without_rest(match: re.Match[str]) -> str:
    """Return the placeholder of a token alone where what follows a line's end or a blank is the rest of it."""
    return match["token"] if is_random(match["rest"]) else match[0]


def _anywhere(names: Iterable[tuple[str, str]]) -> re.Pattern[str] | None:
    """Known hosts as whole words, known users as a part of a path, known tokens also where a text cut them off.

    Words that could mean anything are left alone.
    """
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
    cut = sorted({re.escape(secret[:_CUT]) for kind, secret in names if kind == "token" and len(secret) >= 2 * _CUT})[:200]
    parts.append(rf"(?P<cut>(?:{'|'.join(cut)})[\w+/=.~-]*)" if cut else "(?P<cut>(?!))")
    return re.compile("|".join(parts)) if hosts or users or cut else None
