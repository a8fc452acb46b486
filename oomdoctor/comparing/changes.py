"""Apply rules/changes to two sets of facts: which differences matter, which do not, and which facts only one side states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from oomdoctor.case.comparison import Difference, Effect, Fact, OneSided, RunChange
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.units import format_figure
from oomdoctor.versions import at_least, within

Facts = Mapping[str, Fact]

_TURNED: Mapping[Effect, Effect] = {"tighter": "looser", "looser": "tighter", "differs": "differs"}
_EFFECTS = ("tighter", "differs", "looser")
_LISTED = ("version.", "training.", "variable.", "alloc.", "card.name", "framework")
"""Facts worth listing if they differ and no rule covers them."""


class WeighedChange(Struct, frozen=True):
    """A change, with the values that determine its order."""

    change: RunChange
    fact: str
    memory: tuple[str, ...]
    rank: int


def changes(rules: Iterable[ChangeRecord], before: Facts, after: Facts) -> list[WeighedChange]:
    """Return the changes that the rules find between two sets of facts."""
    weighed = []
    for rule in rules:
        effect = effect_of(rule, before, after)
        if effect is None:
            continue
        was, now = (shown_value(rule.fact, side[rule.fact]) for side in (before, after))
        change = RunChange(
            id=rule.id,
            about=rule.about,
            effect=effect,
            why=Text(_filled(rule.why.en, was, now), _filled(rule.why.zh, was, now)),
            before=was,
            after=now,
            source=rule.source,
        )
        weighed.append(WeighedChange(change, rule.fact, tuple(rule.memory), rule.rank))
    return weighed


def most_suspicious_first(changes: Iterable[WeighedChange], failed: str | None) -> list[WeighedChange]:
    """Sort changes: those affecting the memory that ran out first (`card`, `host`, `shm`; None if none did), then those that need more."""

    def place(weighed: WeighedChange) -> tuple[bool, int, int]:
        return failed is not None and failed not in weighed.memory, _EFFECTS.index(weighed.change.effect), weighed.rank

    return sorted(changes, key=place)


def effect_of(rule: ChangeRecord, before: Facts, after: Facts) -> Effect | None:
    """Return a rule's effect; None if the fact is unknown on either side, has not changed, or does not apply here."""
    was, now = before.get(rule.fact), after.get(rule.fact)
    if was is None or now is None or _plain(was) == _plain(now):
        return None
    if rule.when is not None and evaluate(rule.when, KnownFacts({**before, **after}, ())).truth is False:
        return None
    if rule.newer is not None and rule.since is not None:
        return _across(rule.newer, rule.since, rule.last, (was, now))
    if rule.larger is not None:
        return _numbers(rule.larger, rule.least, was, now)
    if rule.tightest_first is not None:
        return _choices([_plain(value) for value in rule.tightest_first], _plain(was), _plain(now))
    return "differs"


def differences(before: Facts, after: Facts, explained: set[str]) -> tuple[Difference, ...]:
    """Return the differences, except for facts in `explained`."""
    names = [name for name in before if name in after and name not in explained and name.startswith(_LISTED)]
    every = (Difference(name, shown_value(name, before[name]), shown_value(name, after[name])) for name in names)
    return tuple(difference for difference in every if _plain(difference.before) != _plain(difference.after))


def one_sided(rules: Iterable[ChangeRecord], before: Facts, after: Facts) -> tuple[OneSided, ...]:
    """Return the facts covered by rules that only one side states; each once, regardless of its `unset` value."""
    named: dict[str, OneSided] = {}
    for rule in rules:
        fact = rule.fact
        was, now = (shown_value(fact, side[fact]) if fact in side else None for side in (before, after))
        if (was is None) is not (now is None) and "unset" not in (was, now):
            named.setdefault(fact, OneSided(rule.about, was, now))
    return tuple(named.values())


def shown_value(name: str, value: Fact) -> str:
    """Return a value formatted for display: sizes with units, large counts with commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if name.startswith("model.") and isinstance(value, int) else format_figure(name, value)


def _filled(text: str, was: str, now: str) -> str:
    return text.replace("{before}", was).replace("{after}", now)


def _across(newer: Effect, since: str, last: str | None, versions: tuple[Fact, Fact]) -> Effect | None:
    """Return the effect of crossing a version; None if both are on the same side of it, or one is in an unchecked range."""
    places = [_place(str(version), since, last) for version in versions]
    if places == ["before", "since"]:
        return newer
    return _TURNED[newer] if places == ["since", "before"] else None


def _place(version: str, since: str, last: str | None) -> str:
    is_since = at_least(version, since)
    if is_since is not False:
        return "since" if is_since else "unknown"
    return "before" if within(version, until=last) else "unknown"


def _numbers(larger: Effect, least: float, value: Fact, other: Fact) -> Effect | None:
    if isinstance(value, (bool, str)) or isinstance(other, (bool, str)):
        return "differs"
    if abs(value - other) <= least * max(abs(value), abs(other)):
        return None
    return larger if other > value else _TURNED[larger]


def _choices(values: list[str], was: str, now: str) -> Effect:
    if was not in values or now not in values:
        return "differs"
    return "tighter" if values.index(now) < values.index(was) else "looser"


def _plain(value: Fact) -> str:
    return str(value).strip().lower()
