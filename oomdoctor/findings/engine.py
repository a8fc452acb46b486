"""Rules over a case: which problems hold, in which order, with their texts filled in."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.diagnosis import Cite, Evidence, Finding
from oomdoctor.case.event import Certainty, Event
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import ConditionResult, KnownFacts, evaluate
from oomdoctor.findings.template import fill_template
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.problem import CiteRecord, ProblemCore, ProblemRecord

_ORDER = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}


class _MatchedRule(Struct, frozen=True):
    core: ProblemCore
    result: ConditionResult
    confidence: Certainty


def findings(pack: Pack, known: KnownFacts) -> tuple[Finding, ...]:
    """Judge a case by the rules: the problems that hold, the most certain and most specific first, without advice."""
    matched = []
    for core in pack.problems:
        result = evaluate(core.when, known)
        if result.truth or (result.truth is None and result.events):
            matched.append(_MatchedRule(core, result, _confidence(Certainty(core.confidence), result)))
    silenced = {name for rule in matched if rule.result.truth for name in rule.core.silences}
    matched = [rule for rule in matched if rule.core.id not in silenced]
    matched.sort(key=lambda rule: (not rule.result.truth, rule.core.rank, _ORDER[rule.confidence]))
    return tuple(_finding(pack, problem, rule, known) for rule in matched if (problem := pack.problem(rule.core.id)) is not None)


def _confidence(of_rule: Certainty, result: ConditionResult) -> Certainty:
    """Return how sure a rule may be: never more than it says, nor than the surest message that it stands on."""
    if not result.truth:
        return Certainty.POSSIBLE
    surest = min((event.certainty for event in result.events if event.certainty), key=_ORDER.__getitem__, default=of_rule)
    return max(of_rule, surest, key=_ORDER.__getitem__)


def _finding(pack: Pack, problem: ProblemRecord, rule: _MatchedRule, known: KnownFacts) -> Finding:
    return Finding(
        id=problem.id,
        cause=problem.cause,
        severity=problem.severity,
        confidence=rule.confidence,
        title=fill_template(problem.title, known.facts),
        why=fill_template(problem.why, known.facts),
        evidence=tuple(_evidence(event) for event in (rule.result.events or known.roots)[:3]),
        unknowns=tuple(Text(f"certain if {name} is known", f"若已知 {name} 即可确定") for name in rule.result.missing),
        cites=tuple(cite for cited in problem.cites if (cite := _cite(pack, cited)) is not None),
    )


def _evidence(event: Event) -> Evidence:
    return Evidence(place=event.place, text=event.text)


def _cite(pack: Pack, cited: CiteRecord) -> Cite | None:
    source = pack.source(cited.source)
    if source is None:
        return None
    claim = next((claim for claim in source.claims if claim.id == cited.claim), None)
    says = claim.says if claim else cited.says
    if says is None:
        return None
    return Cite(
        source=source.id,
        title=source.title,
        url=source.url,
        says=says,
        verdict=claim.verdict if claim else None,
        correction=claim.correction if claim else None,
    )
