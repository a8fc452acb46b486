"""Compile rule files into a pack: checked, with its patterns expanded, as the bytes that `pack.Pack` reads."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from msgspec.json import encode
from msgspec.structs import replace

from oomdoctor.errors import RuleError
from oomdoctor.knowledge.compiled.format import FORMAT, PackEntry, PackHead, PackLine, PackMatching
from oomdoctor.knowledge.lint import broken, other_patterns, unbounded
from oomdoctor.knowledge.load import load_rules
from oomdoctor.knowledge.pattern import alternatives, expand, find_needs, fragments
from oomdoctor.knowledge.phrases import lexicon_tree
from oomdoctor.knowledge.records.base import Record
from oomdoctor.knowledge.records.bug import ProgramBug
from oomdoctor.knowledge.records.condition import AllOf, AnyOf, Condition, NotThat, TextCondition
from oomdoctor.knowledge.records.evidence import ComputationCore, ComputationRecord, EvidenceCore
from oomdoctor.knowledge.records.fix import NotThisRecord
from oomdoctor.knowledge.records.framework import FrameworkCore, FrameworkRecord
from oomdoctor.knowledge.records.odds import EVIDENCE_LOG_ODDS, PROBLEM_LOG_ODDS
from oomdoctor.knowledge.records.problem import ProblemCore, ProblemRecord
from oomdoctor.knowledge.records.request import RequestCore, RequestRecord, RequestSign, SignCore, SignPattern
from oomdoctor.knowledge.records.signature import LEDGER, Alternative, SignatureCore
from oomdoctor.knowledge.rows.bug_rows import program_bugs
from oomdoctor.knowledge.rule_set import LoadedSignature, RuleSet
from oomdoctor.knowledge.yaml_file import place_of_word

_MEMORY = re.compile(r"\(\?P<(?:peak_)?(?:allocated|reserved|active|used)_bytes>")


def compile_pack(root: str, over: str | None = None, *, own: Sequence[str] = (), has_examples: bool = True) -> bytes:
    """Return the rule files below `root`, with those below `over` laid over them, checked and packed.

    `own` are folders of which every pattern is looked at, too; those of the built-in rules are held by a test. Only the handbook and
    the tests of rules read examples.
    """
    rules = load_rules(Path(root), None if over is None else Path(over))
    if own:
        _check_patterns(rules, tuple(f"{os.path.abspath(folder)}{os.sep}" for folder in own))
    return packed(rules, root, has_examples=has_examples)


def _check_patterns(rules: RuleSet, folders: tuple[str, ...]) -> None:
    """Raise RuleError at the first pattern of these folders that is broken or could hang."""
    named = [(loaded.path, loaded.record.id, expand(loaded.record.pattern)) for loaded in rules.signatures if loaded.record.pattern]
    for path, id_, pattern in (*named, *other_patterns(rules)):
        if os.path.abspath(path).startswith(folders):
            why = broken(pattern) or unbounded(pattern)
            if why is not None:
                raise RuleError(path, *place_of_word(path, id_, "pattern"), f"{id_}: {why}")


def packed(rules: RuleSet, root: str, *, has_examples: bool = True) -> bytes:
    """Return rules as a pack; paths in it are relative to `root`."""
    lines: list[bytes] = []
    end = 0

    def put(value: object) -> PackLine:
        nonlocal end
        line = encode(value) + b"\n"
        lines.append(line)
        start, end = end, end + len(line)
        return PackLine(start, len(line))

    def entry(record: Record | list[NotThisRecord], path: str = "") -> PackEntry:
        line = put(record if has_examples else _without_examples(record))
        return PackEntry(line.start, line.length, os.path.relpath(path, root) if path else "")

    indexes = {
        "signatures": {loaded.record.id: entry(loaded.record, loaded.path) for loaded in rules.signatures},
        "problems": {record.id: entry(record, path) for path, record in rules.problems},
        "fixes": {record.id: entry(record, path) for path, record in rules.fixes},
        "sources": {record.id: entry(record) for record in rules.sources},
        "wrong_advice": {name: entry(advice) for name, advice in _wrong_advice(rules).items()},
        "frameworks": {record.framework: entry(record, path) for path, record in rules.frameworks},
        "servers": {record.server: entry(record, path) for path, record in rules.servers},
        "checks": {record.id: entry(record, path) for path, record in rules.checks},
        "forms": {record.id: entry(record, path) for path, record in rules.forms},
        "sheets": {record.id: entry(record, path) for path, record in rules.sheets},
        "templates": {record.id: entry(record, path) for path, record in rules.templates},
        "causes": {record.id: entry(record) for record in rules.causes},
        "computations": {record.id: entry(record) for record in rules.computations},
        "holdings": {record.id: entry(record) for record in rules.holdings},
        "evidence": {record.id: entry(record) for record in rules.evidence},
        "phases": {record.id: entry(record) for record in rules.phases},
        "layouts": {record.id: entry(record) for record in rules.layouts},
        "exports": {record.id: entry(record) for record in rules.exports},
        "bugs": {record.id: entry(record, path) for path, record in _bugs(rules)},
        "requests": {record.id: entry(record, path) for path, record in rules.requests},
        "operations": {record.id: entry(record) for record in rules.operations},
        "quantities": {record.id: entry(record) for record in rules.quantities},
        "changes": {record.id: entry(record, path) for path, record in rules.changes},
    }
    cores = [matching(loaded) for loaded in rules.signatures]
    literals = sorted({literal for core in cores for literal in core.literals})
    families = sorted({core.family for core in cores if core.family is not None})
    behind_literal: dict[str, list[int]] = {literal: [] for literal in literals}
    for number, core in enumerate(cores):
        for literal in dict.fromkeys(core.literals):
            behind_literal[literal].append(number)
    behind = list(behind_literal.values())
    sampled = {number for number, signatures in enumerate(behind) if all(cores[signature].is_aside for signature in signatures)}
    matched = PackMatching(
        literals=literals,
        behind=behind,
        sampled=sampled,
        courses={
            number
            for number in sampled
            if any(_prints_memory(cores[signature]) or LEDGER in rules.signatures[signature].record.tells for signature in behind[number])
        },
        families={name: [number for number, core in enumerate(cores) if core.family == name] for name in families},
        observed=[number for number, core in enumerate(cores) if core.says is not None],
        cores=[put(core) for core in cores],
        problems=[
            ProblemCore(record.id, with_needs(record.when), record.cause, _odds(record), record.confidence, record.rank, record.silences)
            for _, record in rules.problems
        ],
        evidence=[
            EvidenceCore(record.id, with_needs(record.when), {name: EVIDENCE_LOG_ODDS[weight] for name, weight in record.weights.items()})
            for record in rules.evidence
        ],
        topics={loaded.record.id: loaded.record.tells for loaded in rules.signatures if loaded.record.tells},
    )
    head = PackHead(
        format=FORMAT,
        check=0,
        matching=put(matched),
        computations=put([_computation_core(record) for record in rules.computations]),
        requests=put(_request_cores(rules)),
        shown_bugs=put([_matched_bug(record) for _, record in _bugs(rules) if record.bug.shown or record.bug.came_with_release]),
        lexicon=put(lexicon_tree((concept for _, concept in rules.concepts), rules.grammar)),
        frameworks=put([_framework_core(record) for _, record in rules.frameworks]),
        parts={part: put(index) for part, index in indexes.items()},
    )
    rest = b"".join(lines)
    return encode(replace(head, check=zlib.crc32(rest))) + b"\n" + rest


def _odds(record: ProblemRecord) -> float | None:
    return None if record.weight is None else PROBLEM_LOG_ODDS[record.weight]


def _bugs(rules: RuleSet) -> list[tuple[str, ProgramBug]]:
    return [(path, record) for path, file in rules.bugs for record in program_bugs(file)]


def _matched_bug(record: ProgramBug) -> ProgramBug:
    """Return a bug as matching needs it."""
    shown = [sign if sign.when is None else replace(sign, when=with_needs(sign.when)) for sign in record.bug.shown]
    return replace(record, bug=replace(record.bug, shown=shown, examples=[], near_misses=[]))


def _without_examples(record: Record | list[NotThisRecord]) -> object:
    if isinstance(record, ProgramBug):
        return replace(record, bug=_without_examples(record.bug))
    if isinstance(record, RequestRecord):
        return replace(record, example="", near_miss="")
    shown: dict[str, list[object]] = {name: [] for name in ("examples", "near_misses") if hasattr(record, name)}
    return replace(record, **shown) if isinstance(record, Record) else record


def _prints_memory(core: SignatureCore) -> bool:
    """Return whether a message names bytes of a card."""
    return any(_MEMORY.search(alternative.pattern) for alternative in core.alternatives)


def _computation_core(record: ComputationRecord) -> ComputationCore:
    return ComputationCore(record.id, record.pattern, record.words or fragments(record.pattern, most=16) or [])


def _request_cores(rules: RuleSet) -> list[RequestCore]:
    general = {operation.id for operation in rules.operations if operation.general}
    trains = {operation.id for operation in rules.operations if operation.trains}
    return [
        RequestCore(
            id=record.id,
            programs=record.programs,
            phases=record.phases,
            memory=record.memory,
            signs=[_sign_core(sign) for sign in record.signs],
            general=record.operation in general,
            trains=record.operation in trains,
        )
        for _, record in rules.requests
    ]


def _sign_core(sign: RequestSign) -> SignCore:
    when = None if sign.when is None else with_needs(sign.when)
    message, frame, near = (_sign_pattern(pattern) for pattern in (sign.message, sign.frame, sign.near))
    return SignCore(message, frame, near, sign.computes, sign.shape, when)


def _sign_pattern(pattern: str | None) -> SignPattern | None:
    return None if pattern is None else SignPattern(pattern, fragments(pattern, most=16) or [])


def _framework_core(record: FrameworkRecord) -> FrameworkCore:
    core = FrameworkCore(**{field: getattr(record, field) for field in FrameworkCore.__struct_fields__})
    marks = core.in_logs
    if marks is None or marks.pattern is None:
        return core
    return replace(core, in_logs=replace(marks, needs=fragments(marks.pattern) or []))


def _wrong_advice(rules: RuleSet) -> dict[str, list[NotThisRecord]]:
    """Return for each problem the advice that is wrong for it."""
    out: dict[str, list[NotThisRecord]] = {}
    for _, fix in rules.fixes:
        for advice in fix.not_this:
            for problem in advice.problems:
                out.setdefault(problem, []).append(advice)
    return out


def matching(loaded: LoadedSignature) -> SignatureCore:
    """Return what the matcher needs of a signature."""
    record = loaded.record
    return SignatureCore(
        id=record.id,
        program=loaded.program,
        purpose=record.purpose,
        kind=record.kind,
        certainty=record.certainty,
        outcome=record.outcome,
        general=record.general,
        literals=record.literals,
        alternatives=[_alternative(branch) for branch in alternatives(expand(record.pattern or ""))],
        family=record.family,
        set=record.set,
        unit=record.unit,
        says=record.says,
    )


def _alternative(expression: str) -> Alternative:
    needs = find_needs(expression)
    return Alternative(expression) if needs is None else Alternative(expression, needs.texts, needs.reach)


def with_needs(when: Condition) -> Condition:
    """Return a condition in which each text to search says what it must hold, so that most are never compiled."""
    if isinstance(when, TextCondition):
        needed = fragments(when.pattern)
        return replace(when, needs=tuple(needed)) if needed else when
    if isinstance(when, NotThat):
        return NotThat(with_needs(when.part))
    if isinstance(when, AllOf):
        return AllOf(tuple(map(with_needs, when.parts)))
    return AnyOf(tuple(map(with_needs, when.parts))) if isinstance(when, AnyOf) else when
