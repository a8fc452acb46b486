"""Apply rules to a case: which problems hold, how probable each explanation is, with their texts filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.diagnosis import Cite, Evidence, Finding, Sign
from oomdoctor.case.event import Certainty, Event
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import ConditionResult, KnownFacts, evaluate
from oomdoctor.findings.explanations import Explanation, WeighedExplanation, weigh
from oomdoctor.findings.template import fill_template
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.evidence import EVIDENCE
from oomdoctor.knowledge.records.problem import CiteRecord, ProblemCore, ProblemRecord

_FIRST = 20
"""A statement of this rank or better comes before explanations that are only possible: what is missing matters more than guesses."""
_NO_EVIDENCE: Mapping[str, Mapping[str, float]] = {}
_ORDER = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}


class _MatchedRule(Struct, frozen=True):
    core: ProblemCore
    result: ConditionResult
    confidence: Certainty
    weighed: WeighedExplanation | None = None


def evidence_seen(pack: Pack, known: KnownFacts) -> Mapping[str, Mapping[str, float]]:
    """Return the evidence that holds in a case, with its weights."""
    return {core.id: core.weights for core in pack.evidence if evaluate(core.when, known).truth}


def conclusions(pack: Pack, seen: Iterable[str], known: KnownFacts, *, is_request_known: bool) -> tuple[Text, ...]:
    """Return the on-screen sentences of the evidence, with the figures filled in, in the order of the rules."""
    records = [record for name in seen if (record := pack.record(EVIDENCE, name)) is not None]
    return tuple(
        fill_template(record.concludes, known.facts)
        for record in records
        if record.concludes is not None and not (record.unless_known and is_request_known)
    )


def findings(pack: Pack, known: KnownFacts, seen: Mapping[str, Mapping[str, float]] = _NO_EVIDENCE) -> tuple[Finding, ...]:
    """Judge a case by the rules: explanations, the most probable first, then statements and unknowns, without advice.

    `seen` is the evidence that weights the explanations.
    """
    results = [(core, evaluate(core.when, known)) for core in pack.problems]
    silenced = {name for core, result in results if result.truth for name in core.silences}
    holding = [(core, result) for core, result in results if result.truth and core.id not in silenced]
    unsure = [(core, result) for core, result in results if result.truth is None and result.events and core.id not in silenced]
    explanations, statements = _explanations(holding, seen), _statements(holding)
    told = any(rule.confidence is not Certainty.POSSIBLE for rule in explanations)
    before = [] if told else [rule for rule in statements if rule.core.rank <= _FIRST]
    rules = [
        *before,
        *explanations,
        *(rule for rule in statements if rule not in before),
        *(_MatchedRule(core, result, Certainty.POSSIBLE) for core, result in unsure),
    ]
    return tuple(_finding(pack, problem, rule, known) for rule in rules if (problem := pack.problem(rule.core.id)) is not None)


def _explanations(holding: Sequence[tuple[ProblemCore, ConditionResult]], seen: Mapping[str, Mapping[str, float]]) -> list[_MatchedRule]:
    """Return the explanations of the failure, the most probable first."""
    rules = {core.id: (core, result) for core, result in holding if core.weight is not None}
    explanations = [Explanation(core.id, core.cause, core.weight) for core, _ in rules.values() if core.weight is not None]
    weighed = weigh(explanations, seen)
    return [
        _MatchedRule(core, result, _capped(Certainty.of(explanation.probability), result), explanation)
        for explanation in weighed
        for core, result in (rules[explanation.problem],)
    ]


def _statements(holding: Sequence[tuple[ProblemCore, ConditionResult]]) -> list[_MatchedRule]:
    """Return the statements made alongside the explanations."""
    stated = [
        _MatchedRule(core, result, _capped(Certainty(core.confidence), result))
        for core, result in holding
        if core.weight is None and core.confidence is not None
    ]
    return sorted(stated, key=lambda rule: (rule.core.rank, _ORDER[rule.confidence]))


def _capped(of_rule: Certainty, result: ConditionResult) -> Certainty:
    """Return how certain a rule may be: never more than the most certain message it relies on."""
    surest = min((event.certainty for event in result.events if event.certainty), key=_ORDER.__getitem__, default=of_rule)
    return max(of_rule, surest, key=_ORDER.__getitem__)


def _finding(pack: Pack, problem: ProblemRecord, rule: _MatchedRule, known: KnownFacts) -> Finding:
    return Finding(
        id=problem.id,
        cause=problem.cause,
        severity=problem.severity,
        confidence=rule.confidence,
        probability=None if rule.weighed is None else round(rule.weighed.probability, 3),
        signs=() if rule.weighed is None else tuple(_signs(pack, rule.weighed)),
        title=fill_template(problem.title, known.facts),
        why=fill_template(problem.why, known.facts),
        evidence=tuple(_evidence(event) for event in (rule.result.events or known.roots)[:3]),
        unknowns=tuple(Text(f"certain if {name} is known", f"若已知 {name} 即可确定") for name in rule.result.missing),
        cites=tuple(cite for cited in problem.cites if (cite := _cite(pack, cited)) is not None),
    )


def _signs(pack: Pack, weighed: WeighedExplanation) -> list[Sign]:
    """Return the evidence for and against an explanation, the weightiest first."""
    signs = sorted(weighed.signs, key=lambda sign: -abs(sign[1]))
    return [Sign(id=name, says=record.says, weight=weight) for name, weight in signs if (record := pack.record(EVIDENCE, name)) is not None]


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
