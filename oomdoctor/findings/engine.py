"""Rules over a case: which problems hold, in which order, with their texts filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from oomdoctor.case.diagnosis import Cite, Evidence, Finding
from oomdoctor.case.event import Certainty, Event
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import ConditionResult, KnownFacts, evaluate
from oomdoctor.findings.template import fill_template

_ORDER = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}


class RuleTexts(Protocol):
    """The part of a rule pack that the engine reads: conditions at once, texts when a rule fired."""

    problems: list[dict[str, Any]]

    def text(self, part: str, name: str) -> Mapping[str, Any] | None:
        """The texts of one rule."""
        ...


class _MatchedRule(Struct, frozen=True):
    core: Mapping[str, Any]
    answer: ConditionResult
    confidence: Certainty


def findings(pack: RuleTexts, known: KnownFacts) -> tuple[Finding, ...]:
    """Judge a case by the rules: the problems that hold, the most certain and most specific first, without advice."""
    held = []
    for core in pack.problems:
        answer = evaluate(core["when"], known)
        if answer.truth or (answer.truth is None and answer.events):
            held.append(_MatchedRule(core, answer, _confidence(Certainty(core["confidence"]), answer)))
    silenced = {name for one in held if one.answer.truth for name in one.core["silences"]}
    held = [one for one in held if one.core["id"] not in silenced]
    held.sort(key=lambda one: (not one.answer.truth, one.core["rank"], _ORDER[one.confidence]))
    return tuple(_finding(pack, one, known) for one in held)


def _confidence(said: Certainty, answer: ConditionResult) -> Certainty:
    """How sure a rule may be: never more than it says, nor than the surest message that it stands on."""
    if not answer.truth:
        return Certainty.POSSIBLE
    surest = min((event.certainty for event in answer.events if event.certainty), key=_ORDER.__getitem__, default=said)
    return max(said, surest, key=_ORDER.__getitem__)


def _finding(pack: RuleTexts, held: _MatchedRule, known: KnownFacts) -> Finding:
    text = pack.text("problems", held.core["id"]) or {}
    return Finding(
        id=held.core["id"],
        cause=text.get("cause"),
        severity=text.get("severity", "error"),
        confidence=held.confidence,
        title=fill_template(text["title"], known.facts),
        why=fill_template(text["why"], known.facts),
        evidence=tuple(_evidence(event) for event in (held.answer.events or known.roots)[:3]),
        unknowns=tuple(Text(f"certain if {name} is known", f"若已知 {name} 即可确定") for name in held.answer.missing),
        cites=tuple(cite for one in text.get("cites", ()) if (cite := _cite(pack, one)) is not None),
    )


def _evidence(event: Event) -> Evidence:
    return Evidence(place=event.place, text=event.text)


def _cite(pack: RuleTexts, cited: Mapping[str, Any]) -> Cite | None:
    source = pack.text("sources", cited["source"])
    if source is None:
        return None
    claims: Sequence[Mapping[str, Any]] = source.get("claims", ())
    claim = next((one for one in claims if one["id"] == cited.get("claim")), None)
    said = claim["says"] if claim else cited.get("says")
    if not said:
        return None
    correction = claim.get("correction") if claim else None
    return Cite(
        source=source["id"],
        title=source["title"],
        url=source.get("url"),
        says=Text(said["en"], said["zh"]),
        verdict=claim["verdict"] if claim else None,
        correction=Text(correction["en"], correction["zh"]) if correction else None,
    )
