"""Rules over a case: which problems hold, in which order, with their texts filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from oomdoctor.case.diagnosis import Cite, Evidence, Finding, Fix, Setting, Text
from oomdoctor.case.events import Certainty, Event
from oomdoctor.findings.match import Answer, Fact, Known, evaluate
from oomdoctor.units import format_share, format_size

_PLACEHOLDER = re.compile(r"\{([a-z_]+\.[A-Za-z_0-9.]+)\}")
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


def findings(pack: Texts, known: Known) -> tuple[Finding, ...]:
    """What the rules make of a case, the most certain and most specific first."""
    held = []
    for core in pack.problems:
        answer = evaluate(core["when"], known)
        if answer.truth or (answer.truth is None and answer.events):
            confidence = Certainty(core["confidence"]) if answer.truth else Certainty.POSSIBLE
            held.append(_Held(core, answer, confidence))
    silenced = {name for one in held if one.answer.truth for name in one.core["silences"]}
    held = [one for one in held if one.core["id"] not in silenced]
    held.sort(key=lambda one: (not one.answer.truth, one.core["rank"], _ORDER[one.confidence]))
    return tuple(_finding(pack, one, known) for one in held)


def _finding(pack: Texts, held: _Held, known: Known) -> Finding:
    text = pack.text("problems", held.core["id"]) or {}
    return Finding(
        id=held.core["id"],
        cause=text.get("cause"),
        severity=text.get("severity", "error"),
        confidence=held.confidence,
        title=_words(text["title"], known.facts),
        why=_words(text["why"], known.facts),
        evidence=tuple(_evidence(event) for event in (held.answer.events or known.roots)[:3]),
        unknowns=tuple(Text(f"certain if {name} is known", f"若已知 {name} 即可确定") for name in held.answer.missing),
        fixes=tuple(fix for name in text.get("fixes", ()) if (fix := _fix(pack, name, known.facts)) is not None),
        cites=tuple(cite for one in text.get("cites", ()) if (cite := _cite(pack, one)) is not None),
    )


def _evidence(event: Event) -> Evidence:
    return Evidence(place=event.place, text=event.text)


def _fix(pack: Texts, name: str, known: Mapping[str, Fact]) -> Fix | None:
    text = pack.text("fixes", name)
    if text is None:
        return None
    framework = str(known.get("log.framework") or "")
    settings = tuple(
        Setting(framework=one["framework"], key=one["key"], to=one["to"], before=_before(one["key"], known)) for one in text["settings"]
    )
    own = tuple(one for one in settings if framework and one.framework.lower() == framework.lower())
    changing = tuple(one for one in own or settings if one.before is None or one.before.lower() != one.to.lower())
    if settings and not changing and not text.get("command"):
        return None
    return Fix(
        id=text["id"],
        title=_words(text["title"], known),
        how=_words(text["how"], known),
        settings=changing,
        command=text.get("command"),
        costs=_words(text["costs"], known) if text.get("costs") else None,
        safety=text.get("safety", "review"),
        cites=tuple(text.get("cites", ())),
    )


def _before(key: str, known: Mapping[str, Fact]) -> str | None:
    value = known.get(f"log.{key.lstrip('-').replace('-', '_')}")
    return None if value is None else str(value)


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


def _words(text: Mapping[str, str], known: Mapping[str, Fact]) -> Text:
    return Text(*(_PLACEHOLDER.sub(lambda one: _shown(one[1], known.get(one[1])), text[lang]) for lang in ("en", "zh")))


def _shown(name: str, value: Fact) -> str:
    """A fact in a text: sizes with their unit, shares as percent."""
    if value is None:
        return "?"
    if name.endswith("_bytes") and isinstance(value, int):
        return format_size(value)
    if name.endswith("_share") and isinstance(value, (int, float)):
        return format_share(float(value))
    return str(value)
