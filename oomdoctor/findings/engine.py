"""Rules over a case: which problems hold, in which order, with their texts filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from oomdoctor.advice.fixes import advice
from oomdoctor.case.diagnosis import Cite, Evidence, Finding
from oomdoctor.case.event import Certainty, Event
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Answer, Known, evaluate
from oomdoctor.findings.template import words

if TYPE_CHECKING:
    from oomdoctor.case.settings import Training

_ORDER = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}


class Texts(Protocol):
    """The part of a rule pack that the engine reads: conditions at once, texts when a rule fired."""

    problems: list[dict[str, Any]]

    def text(self, part: str, name: str) -> Mapping[str, Any] | None:
        """The texts of one rule."""
        ...


class _Held(Struct, frozen=True):
    core: Mapping[str, Any]
    answer: Answer
    confidence: Certainty


def findings(pack: Texts, known: Known, training: Training | None = None) -> tuple[Finding, ...]:
    """What the rules make of a case, the most certain and most specific first."""
    held = []
    for core in pack.problems:
        answer = evaluate(core["when"], known)
        if answer.truth or (answer.truth is None and answer.events):
            held.append(_Held(core, answer, _confidence(Certainty(core["confidence"]), answer)))
    silenced = {name for one in held if one.answer.truth for name in one.core["silences"]}
    held = [one for one in held if one.core["id"] not in silenced]
    held.sort(key=lambda one: (not one.answer.truth, one.core["rank"], _ORDER[one.confidence]))
    return tuple(_finding(pack, one, known, training) for one in held)


def _confidence(said: Certainty, answer: Answer) -> Certainty:
    """How sure a rule may be: never more than it says, nor than the surest message that it stands on."""
    if not answer.truth:
        return Certainty.POSSIBLE
    surest = min((event.certainty for event in answer.events if event.certainty), key=_ORDER.__getitem__, default=said)
    return max(said, surest, key=_ORDER.__getitem__)


def _finding(pack: Texts, held: _Held, known: Known, training: Training | None) -> Finding:
    text = pack.text("problems", held.core["id"]) or {}
    advised = advice(pack, text, known, training)
    return Finding(
        id=held.core["id"],
        cause=text.get("cause"),
        severity=text.get("severity", "error"),
        confidence=held.confidence,
        title=words(text["title"], known.facts),
        why=words(text["why"], known.facts),
        evidence=tuple(_evidence(event) for event in (held.answer.events or known.roots)[:3]),
        unknowns=tuple(Text(f"certain if {name} is known", f"若已知 {name} 即可确定") for name in held.answer.missing),
        fixes=advised.fixes,
        already=advised.already,
        not_this=advised.not_this,
        cites=tuple(cite for one in text.get("cites", ()) if (cite := _cite(pack, one)) is not None),
    )


def _evidence(event: Event) -> Evidence:
    return Evidence(place=event.place, text=event.text)


def _cite(pack: Texts, cited: Mapping[str, Any]) -> Cite | None:
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
