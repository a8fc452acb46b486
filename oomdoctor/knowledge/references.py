"""Names in rules that point nowhere: facts, events, fixes, sources, frameworks, and whatever else a rule names without holding it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import get_args

from msgspec import Struct
from packaging.version import InvalidVersion, Version

from oomdoctor.case.event import RESOURCES, STATEMENTS, Outcome
from oomdoctor.case.serving import StartupCheckName
from oomdoctor.case.settings import RunSettings
from oomdoctor.case.text import Text
from oomdoctor.knowledge.conditions import OPERATORS
from oomdoctor.knowledge.fact_names import PHASES, FactNames, fact_names, fields_of
from oomdoctor.knowledge.records.bug import BugFile, BugRecord
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.knowledge.records.check import CheckRecord
from oomdoctor.knowledge.records.condition import (
    AllOf,
    AnyOf,
    Condition,
    EventCondition,
    FactCondition,
    NotThat,
    TextCondition,
)  # fmt: skip
from oomdoctor.knowledge.records.evidence import EvidenceRecord
from oomdoctor.knowledge.records.fix import FixRecord, SettingRecord
from oomdoctor.knowledge.records.form import FormRecord
from oomdoctor.knowledge.records.framework import FrameworkRecord, WriteRecord
from oomdoctor.knowledge.records.phase import PhaseRecord
from oomdoctor.knowledge.records.problem import CaseExample, ProblemRecord
from oomdoctor.knowledge.records.request import ANY, RequestRecord
from oomdoctor.knowledge.records.server import COMPUTED, ServerDefault, ServerDefaults, ServerRecord
from oomdoctor.knowledge.records.signature import KindName, SignatureRecord
from oomdoctor.knowledge.rows.observations import FIELD
from oomdoctor.knowledge.rule_set import RuleSet
from oomdoctor.knowledge.version_spans import span_faults
from oomdoctor.knowledge.yaml_file import did_you_mean

_PLACEHOLDER = re.compile(r"\{([a-z_]+\.[A-Za-z_0-9.-]+)\}")
_FILLED = re.compile(r"\{(\w+)\}")
_KINDS = get_args(KindName)
_OUTCOMES = tuple(outcome.value for outcome in Outcome)


class Wrong(Struct, frozen=True):
    """A mistake in a rule."""

    path: str
    id: str
    why: str
    word: str = ""
    """What stands in the file where the mistake is."""


class _Names(Struct, frozen=True):
    """Everything that rules can name."""

    facts: FactNames
    signatures: dict[str, set[str]]
    """Signature -> the fields of its events."""
    observations: frozenset[str]
    programs: frozenset[str]
    frameworks: frozenset[str]
    written: frozenset[tuple[str, str]]
    """Frameworks and the keys that they write for fixes, which are checked where they stand."""
    problems: frozenset[str]
    fixes: frozenset[str]
    sources: dict[str, set[str]]
    """Source -> its claims."""
    causes: frozenset[str]
    sheets: frozenset[str]
    topics: frozenset[str]
    computations: frozenset[str]
    operations: frozenset[str]
    quantities: frozenset[str]


def wrong_references(rules: RuleSet) -> Iterator[Wrong]:
    """Yield each name in the rules that points nowhere, and each version that is none."""
    names = _names(rules)
    for loaded in rules.signatures:
        yield from _within(loaded.path, loaded.record.id, _signature(loaded.record, names))
    for path, problem in rules.problems:
        yield from _within(path, problem.id, _problem(problem, names))
    for evidence in rules.evidence:
        yield from _within(str(Path(rules.root) / "evidence.yaml"), evidence.id, _evidence(evidence, names))
    for phase in rules.phases:
        yield from _within(str(Path(rules.root) / "phases.yaml"), phase.id, _phase(phase, names))
    for holding in rules.holdings:
        meant = (_unknown("computation", name, names.computations) for name in holding.computations)
        yield from _within(str(Path(rules.root) / "holdings.yaml"), holding.id, meant)
    for path, fix in rules.fixes:
        yield from _within(path, fix.id, _fix(fix, names))
    for path, check in rules.checks:
        yield from _within(path, check.id, _check(check, names))
    for path, change in rules.changes:
        yield from _within(path, change.id, _change(change, names))
    for path, file in rules.bugs:
        yield from _within(path, file.program, _bug_file(file, names))
        for bug in file.bugs:
            yield from _within(path, bug.id, _bug(bug, names))
    for path, request in rules.requests:
        yield from _within(path, request.id, _request(request, names))
    concepts = {concept.id for _, concept in rules.concepts}
    for sentence in rules.grammar:
        named = (name for place in (*sentence.sequence, sentence.beside) for name in place)
        yield from _within(str(Path(rules.root) / "grammar.yaml"), sentence.id, (_unknown("concept", name, concepts) for name in named))
    for path, form in rules.forms:
        yield from _within(path, form.id, _form(form, names))
    for path, sheet in rules.sheets:
        yield from _within(path, sheet.id, _of_forms((fact for _, fact in sheet.lines), names))
    for path, template in rules.templates:
        served = (_unknown("framework", value.framework, names.frameworks) for value in template.serves)
        filled = [word for command in template.launch.values() for word in _FILLED.findall(command)]
        yield from _within(path, template.id, (*served, *(_unknown("placeholder", word, ("file", "config")) for word in filled)))
        yield from _within(path, template.id, (_unknown("framework", name, names.frameworks) for name in template.launch))
    for path, framework in rules.frameworks:
        yield from _within(path, framework.framework, _framework(framework, names))
    for path, server in rules.servers:
        yield from _within(path, server.server, _server(server, names))


_Mistake = tuple[str, str] | None
"""Why something is wrong, and the word in the file."""


def _within(path: str, id: str, mistakes: Iterable[_Mistake]) -> Iterator[Wrong]:
    yield from (Wrong(path, id, *mistake) for mistake in dict.fromkeys(mistakes) if mistake is not None)


def _names(rules: RuleSet) -> _Names:
    return _Names(
        facts=fact_names(rules),
        signatures={loaded.record.id: fields_of(loaded.record) | {"rank"} for loaded in rules.signatures},
        observations=frozenset(loaded.record.id for loaded in rules.signatures if loaded.record.says is not None),
        programs=frozenset(loaded.program for loaded in rules.signatures),
        frameworks=frozenset(framework.framework for _, framework in rules.frameworks),
        written=frozenset((framework.framework, way.key) for _, framework in rules.frameworks for way in _ways(framework)),
        problems=frozenset(problem.id for _, problem in rules.problems),
        fixes=frozenset(fix.id for _, fix in rules.fixes),
        sources={source.id: {claim.id for claim in source.claims} for source in rules.sources},
        causes=frozenset(cause.id for cause in rules.causes),
        sheets=frozenset(sheet.id for _, sheet in rules.sheets),
        topics=frozenset((*STATEMENTS, *rules.topics)),
        computations=frozenset(record.id for record in rules.computations),
        operations=frozenset(record.id for record in rules.operations),
        quantities=frozenset(record.id for record in rules.quantities),
    )


def _unknown(kind: str, name: str, known: Collection[str]) -> _Mistake:
    return None if name in known else (f"unknown {kind} '{name}'{did_you_mean(name, known)}", name)


def _fact(name: str, scope: frozenset[str], names: _Names) -> _Mistake:
    exists, near = names.facts.nearest(name, scope)
    return None if exists else _unknown("fact", name, near)


def _no_version(version: str | None) -> _Mistake:
    try:
        Version(version or "0")
    except InvalidVersion:
        return f"'{version}' is not a version", str(version)
    return None


def _placeholders(texts: Iterable[Text | None], scope: frozenset[str], names: _Names) -> Iterator[_Mistake]:
    for text in texts:
        if text is not None:
            yield from (_fact(name, scope, names) for lang in (text.en, text.zh) for name in _PLACEHOLDER.findall(lang))


def _signature(record: SignatureRecord, names: _Names) -> Iterator[_Mistake]:
    yield from (_unknown("topic", name, names.topics) for name in record.tells)
    texts = "" if record.says is None else record.says.en + record.says.zh
    yield from (_unknown("field", name, fields_of(record)) for name in (*record.unit, *(field[1] for field in FIELD.finditer(texts))))
    # A bound of messages may say "before" or "some 2.x".
    yield from (_no_version(re.sub(r"^(?:[<>]=?|~)|\.x$", "", version)) for version in (record.since, record.until) if version is not None)


def _problem(record: ProblemRecord, names: _Names) -> Iterator[_Mistake]:
    scope = names.facts.case
    yield from _condition(record.when, scope, names)
    yield from _placeholders((record.title, record.why), scope, names)
    if record.cause is not None and names.causes:
        yield _unknown("cause", record.cause, names.causes)
    if (record.weight is None) == (record.confidence is None):
        yield "has a weight if it explains a failure, and a confidence if it states something else; exactly one of them", "confidence"
    yield from (_unknown("fix", name, names.fixes) for name in record.fixes)
    yield from (_unknown("problem", name, names.problems) for name in record.silences)
    yield from _observed((*record.examples, *record.near_misses), names)
    for cite in record.cites:
        yield _unknown("source", cite.source, names.sources)
        if cite.claim is not None and cite.source in names.sources:
            yield _unknown(f"claim of {cite.source}", cite.claim, names.sources[cite.source])


def _evidence(record: EvidenceRecord, names: _Names) -> Iterator[_Mistake]:
    yield from _condition(record.when, names.facts.case, names)
    yield from _placeholders((record.concludes,), names.facts.case, names)
    if not record.weights and record.concludes is None:
        yield "neither weighs nor concludes anything", "weights"
    yield from (_unknown("cause or problem", name, names.causes | names.problems) for name in record.weights)
    yield from _observed((*record.examples, *record.near_misses), names)


def _observed(examples: Iterable[CaseExample], names: _Names) -> Iterator[_Mistake]:
    """Yield what examples observe that nobody can."""
    for name, fields in (pair for example in examples for pair in example.observed.items()):
        yield _unknown("observation", name, names.observations)
        yield from (_unknown("field", field, names.signatures.get(name, ())) for field in fields)


def _fix(record: FixRecord, names: _Names) -> Iterator[_Mistake]:
    scope = names.facts.case
    yield from _placeholders((record.title, record.how, record.costs, *(need.says for need in record.needs)), scope, names)
    for row in record.settings:
        if (row.framework, row.key) not in names.written:
            yield from _setting(row, names)
    yield from (_unknown("framework", name, names.frameworks) for name in record.first)
    for change in record.sets:
        yield _unknown("setting", change.setting, RunSettings.__struct_fields__)
        yield from (_unknown("framework", name, names.frameworks) for name in change.without)
        yield from (_fact(name, scope, names) for name in (*change.facts, *([change.was] if change.was else [])))
    for typed in record.typed:
        yield from (_unknown("framework", name, names.frameworks) for name in typed.of)
        yield from _condition(typed.when, scope, names) if typed.when is not None else ()
    for need in record.needs:
        yield from _condition(need.when, scope, names)
    for other in record.elsewhere:
        yield from _condition(other.when, scope, names)
        yield from _placeholders((other.how,), scope, names)
    if record.frees is not None and record.frees.fact is not None:
        yield _fact(record.frees.fact, scope, names)
    for wrong in record.not_this:
        yield from (_unknown("problem", name, names.problems) for name in wrong.problems)
        yield from (_unknown("source", name, names.sources) for name in wrong.cites)
        if wrong.when is not None:
            yield from _condition(wrong.when, scope, names)
    yield from (_unknown("source", name, names.sources) for name in record.cites)


def _phase(record: PhaseRecord, names: _Names) -> Iterator[_Mistake]:
    scope = names.facts.case
    for when in (record.when, *([record.likelier.when] if record.likelier is not None else [])):
        yield from _condition(when, scope, names)
    yield from (_fact(name, scope, names) for name in record.assumes)
    yield from (_unknown("fix", name, names.fixes) for name in record.fixes)


def _setting(row: SettingRecord, names: _Names) -> Iterator[_Mistake]:
    yield _unknown("framework", row.framework, names.frameworks | names.programs)
    if row.sets is not None:
        yield _unknown("setting", row.sets, RunSettings.__struct_fields__)
    yield from (_fact(name, names.facts.case, names) for name in (*row.facts, *([row.was] if row.was else [])))
    if row.when is not None:
        yield from _condition(row.when, names.facts.case, names)
    yield from map(_no_version, (row.since, row.until))


def _check(record: CheckRecord, names: _Names) -> Iterator[_Mistake]:
    scope = names.facts.configs
    yield from _condition(record.when, scope, names)
    yield from (_fact(name, scope, names) for name in record.at)
    yield from _placeholders((record.what, record.why, Text(record.instead or "", "")), scope, names)
    if record.mended_by is not None:
        yield _unknown("fix", record.mended_by, names.fixes)
    yield from (_unknown("setting", name, RunSettings.__struct_fields__) for name in record.sets)
    yield from (_unknown("source", name, names.sources) for name in record.cites)
    yield from (_fact(name, scope, names) for example in (*record.examples, *record.near_misses) for name in example.known)


def _change(record: ChangeRecord, names: _Names) -> Iterator[_Mistake]:
    scope = names.facts.compared
    yield _fact(record.fact, scope, names)
    if record.when is not None:
        yield from _condition(record.when, scope, names)
    filled = [word for lang in (record.why.en, record.why.zh) for word in _FILLED.findall(lang)]
    yield from (_unknown("placeholder", word, ("before", "after")) for word in filled)
    yield from map(_no_version, (record.since, record.last))
    sides = (side for example in (*record.examples, *record.near_misses) for side in (example.before, example.after))
    yield from (_fact(name, scope, names) for side in sides for name in side)


def _bug_file(file: BugFile, names: _Names) -> Iterator[_Mistake]:
    yield from (_unknown("framework", name, names.frameworks) for name in file.runs)
    yield from (_fact(f"log.{name}", names.facts.case, names) for name in file.facts)


def _bug(bug: BugRecord, names: _Names) -> Iterator[_Mistake]:
    yield from ((why, "versions") for why in span_faults(bug.versions, bug.fixed_in))
    if bug.state == "open" and bug.fixed_in is not None:
        yield "an open bug is not fixed in any release", "state"
    if bug.state == "fixed" and bug.fixed_in is None and bug.evidence == "release":
        yield "the release that contains the fix is its evidence: specify it as fixed_in", "evidence"
    if bug.state != "fixed" and bug.workaround is None:
        yield "needs a workaround, because no release fixes it", "state"
    if bug.state == "fixed" and bug.fixed_in is None and bug.workaround is None:
        yield "needs a workaround or the release that fixes it", "state"
    for sign in bug.shown:
        if sign.message is None and not sign.frames and sign.when is None:
            yield "a sign needs a message, frames or a condition", "shown"
        if sign.when is not None:
            yield from _condition(sign.when, names.facts.case, names)


def _request(record: RequestRecord, names: _Names) -> Iterator[_Mistake]:
    yield _unknown("operation", record.operation, names.operations)
    yield from (_unknown("program", name, names.frameworks | names.programs | {ANY}) for name in record.programs)
    yield from (_unknown("phase", name, PHASES) for name in record.phases)
    yield from (_unknown("quantity", name, names.quantities) for name in record.grows_with)
    yield from (_unknown("fix", name, names.fixes) for name in (*record.knobs, *record.does_not_help))
    if both := [name for name in record.knobs if name in record.does_not_help]:
        yield f"'{both[0]}' cannot both be a knob and not help", both[0]
    for sign in record.signs:
        if not (sign.message or sign.frame or sign.near or sign.computes or sign.shape or sign.when):
            yield "a sign needs a message, a frame, something near, a computation, a shape or a condition", "signs"
        yield None if sign.computes is None else _unknown("computation", sign.computes, names.computations)
        yield from (_unknown("quantity", name, names.quantities) for name in sign.shape if isinstance(name, str))
        if sign.when is not None:
            yield from _condition(sign.when, names.facts.case, names)


def _framework(record: FrameworkRecord, names: _Names) -> Iterator[_Mistake]:
    others = (*record.shares, *record.falls_back_to, *([record.trains_like] if record.trains_like else []))
    yield from (_unknown("framework", name, names.frameworks) for name in others)
    yield from (_unknown("program", name, names.programs) for name in record.messages if names.programs)
    yield from (_unknown("setting", name, RunSettings.__struct_fields__) for name in (*record.settings, *record.options, *record.writes))
    for way in _ways(record):
        yield from map(_no_version, (way.since, way.until))
        if way.when is not None:
            yield from _condition(way.when, names.facts.case, names)
    yield from (_fact(name, names.facts.case, names) for name in (record.layer.facts if record.layer is not None else ()))
    if record.in_logs is not None:
        yield from (_no_pattern(pattern) for pattern in (record.in_logs.pattern, record.in_logs.tail) if pattern is not None)
    for table in (*([record.keys] if record.keys else []), *record.options.values()):
        yield from map(_no_version, table.versions)
        spans = (version for span in table.spans for version in (span.since, span.until))
        yield from (_unknown("version", version, table.versions) for version in spans if version is not None)


def _server(record: ServerRecord, names: _Names) -> Iterator[_Mistake]:
    yield _unknown("framework", record.server, names.frameworks)
    yield from (_unknown("check at the start", name, get_args(StartupCheckName)) for name in record.messages)
    filled = [word for message in record.messages.values() for word in _FILLED.findall(message)]
    yield from (_unknown("placeholder", word, ("requests", "length", "batched")) for word in filled)
    defaults = record.defaults
    for name in ServerDefaults.__struct_fields__:
        rows: list[ServerDefault] = getattr(defaults, name) or []
        yield from (mistake for row in rows for mistake in map(_no_version, (row.since, row.until)))
        last = rows[-1] if rows and name not in COMPUTED else None
        if last is not None and (last.until, last.card_gb, last.except_card, last.tensor) != (None, 0, None, 1):
            yield "the last of several defaults must apply to every card of the newest version", last.source


def _ways(record: FrameworkRecord) -> Iterator[WriteRecord]:
    """Yield how a framework writes settings."""
    for ways in record.writes.values():
        yield from ways if isinstance(ways, list) else [WriteRecord(key=ways) if isinstance(ways, str) else ways]


def _form(record: FormRecord, names: _Names) -> Iterator[_Mistake]:
    yield from (_unknown("sheet", field.sheet, names.sheets) for field in record.fields if field.sheet is not None)
    facts = [fact for field in record.fields for fact in (field.fact, *(option.fact for option in field.options))]
    yield from _of_forms((fact for fact in facts if fact is not None), names)


def _of_forms(facts: Iterable[str], names: _Names) -> Iterator[_Mistake]:
    yield from (_fact(name, names.facts.forms, names) for name in facts)


def _condition(when: Condition, scope: frozenset[str], names: _Names) -> Iterator[_Mistake]:
    if isinstance(when, (AllOf, AnyOf)):
        for part in when.parts:
            yield from _condition(part, scope, names)
    elif isinstance(when, NotThat):
        yield from _condition(when.part, scope, names)
    elif isinstance(when, EventCondition):
        yield from _event(when, names)
    elif isinstance(when, TextCondition):
        yield _no_pattern(when.pattern)
    else:
        yield from _compared(when, scope, names)


def _event(when: EventCondition, names: _Names) -> Iterator[_Mistake]:
    signatures = _listed(when.event)
    yield from (_unknown("event", name, names.signatures) for name in signatures)
    closed = {"tells": names.topics, "resource": RESOURCES, "program": names.programs, "kind": _KINDS, "outcome": _OUTCOMES}
    for word, known in closed.items():
        named = {"tells": "topic"}.get(word, word)
        yield from (_unknown(named, name, known) for name in _listed(getattr(when, word)))
    fields = {field for name in signatures or names.signatures for field in names.signatures.get(name, ())}
    yield from (_unknown("field", test.field, fields) for test in when.where)
    yield from (_unknown("operator", test.operator, OPERATORS) for test in when.where)


def _compared(when: FactCondition, scope: frozenset[str], names: _Names) -> Iterator[_Mistake]:
    yield _fact(when.fact, scope, names)
    values = names.facts.values.get(when.fact)
    if values is not None and when.operator in ("is", "in"):
        listed = when.value if isinstance(when.value, tuple) else (when.value,)
        yield from (_unknown(f"value of {when.fact}", str(value), values) for value in listed)


def _no_pattern(pattern: str) -> _Mistake:
    try:
        re.compile(pattern)
    except re.error as why:
        return f"the pattern is not a regular expression: {why}", pattern
    return None


def _listed(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else names
