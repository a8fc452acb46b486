"""Run the examples inside the rules: each must be recognized with its figures, and no near miss may match."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from oomdoctor.api import pipeline
from oomdoctor.api.runs.snapshot_findings import snapshot_findings
from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.case.event import Event
from oomdoctor.comparing.changes import effect_of
from oomdoctor.configs.readers.read import read_config
from oomdoctor.configs.resolve import resolve_config
from oomdoctor.findings.conditions import KnownFacts
from oomdoctor.findings.engine import evidence_seen
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.bug import BugExample, BugRecord
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.knowledge.records.check import CheckExample, CheckRecord
from oomdoctor.knowledge.records.evidence import ComputationRecord, EvidenceRecord, HoldingRecord
from oomdoctor.knowledge.records.layout import LayoutRecord
from oomdoctor.knowledge.records.problem import CaseExample, ProblemRecord
from oomdoctor.knowledge.records.request import RequestRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.references import Wrong
from oomdoctor.knowledge.rule_set import LoadedSignature
from oomdoctor.knowledge.version_spans import outside
from oomdoctor.machine.findings import environment_findings_of_json
from oomdoctor.parse import reading
from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.parse.observer import ObservedFile, Observer
from oomdoctor.parse.recogniser import Recogniser
from oomdoctor.snapshots.sites import Holdings
from oomdoctor.snapshots.stacks import PythonFrame, Stacks
from oomdoctor.triage.placing import Layouts


def check_signature(loaded: LoadedSignature, recogniser: Recogniser) -> Iterator[Wrong]:
    """Yield the errors that the examples of a signature reveal in it."""
    record = loaded.record
    if record.says is not None:
        return
    for example in record.examples:
        events = reading.read_events(example.text, recogniser)
        same = [event for event in events if event.signature == record.id]
        if not same:
            others = ", ".join(sorted({event.signature for event in events})) or "nothing"
            yield _wrong(loaded, f"does not recognize its example ({others} did): {_short(example.text)}", example.text)
            continue
        for name, expected in example.fields.items():
            values = [event.fields.get(name, event.rank if name == "rank" else None) for event in same]
            if not any(_equal(value, expected) for value in values):
                yield _wrong(
                    loaded, f"field {name}: expected {expected!r}, found {values!r} in {_short(example.text)}", f"{name}: {expected}"
                )
    for near in record.near_misses:
        if any(event.signature == record.id for event in reading.read_events(near.text, recogniser)):
            yield _wrong(loaded, f"matches a near miss ({near.why}): {_short(near.text)}", near.text)


def check_problem(path: str, problem: ProblemRecord, pack: Pack) -> Iterator[Wrong]:
    """Yield the errors that the examples of a problem reveal in it."""
    for example in [*problem.examples, *problem.near_misses]:
        findings = explained(example, pack)
        finding = next((finding for finding in findings if finding.id == problem.id), None)
        outcome = "none" if finding is None else "unknown" if finding.unknowns else "match"
        if outcome != example.expect:
            others = ", ".join(finding.id for finding in findings) or "nothing"
            why = f"example '{example.name}': expected {example.expect}, got {outcome} (findings: {others})"
            yield Wrong(path, problem.id, why, f"name: {example.name}")


def check_evidence(path: str, evidence: EvidenceRecord, pack: Pack) -> Iterator[Wrong]:
    """Yield the errors that the examples of a piece of evidence reveal in it."""
    for example in [*evidence.examples, *evidence.near_misses]:
        outcome = "match" if evidence.id in _evidence_of(example, pack) else "none"
        if outcome != example.expect:
            why = f"example '{example.name}': expected {example.expect}, got {outcome}"
            yield Wrong(path, evidence.id, why, f"name: {example.name}")


def _evidence_of(example: CaseExample, pack: Pack) -> Collection[str]:
    """Return the evidence seen in one example."""
    if example.snapshot is not None:
        return evidence_seen(pack, KnownFacts({f"snapshot.{name}": value for name, value in example.snapshot.items()}, ()))
    return diagnose_example(example, pack).evidence


def check_computation(path: str, computation: ComputationRecord, finder: ComputationFinder) -> Iterator[Wrong]:
    """Yield the errors that the examples of a computation reveal in it."""
    for text in computation.examples:
        name = finder.find(text.encode(), b"")
        if name != computation.id:
            yield Wrong(path, computation.id, f"does not match its example's computation ({name or 'nothing'} does): {_short(text)}")
    for text in computation.near_misses:
        if finder.find(text.encode(), b"") == computation.id:
            yield Wrong(path, computation.id, f"matches a near miss: {_short(text)}")


def check_holding(path: str, holding: HoldingRecord, holdings: Holdings) -> Iterator[Wrong]:
    """Yield the errors that the examples of a holding reveal in it."""
    for frames in holding.examples:
        name = _memory_use(holdings, frames)
        if name != holding.id:
            yield Wrong(path, holding.id, f"does not match what its example holds ({name or 'nothing'} does): {frames[0]}", frames[0])
    for frames in holding.near_misses:
        if _memory_use(holdings, frames) == holding.id:
            yield Wrong(path, holding.id, f"matches a near miss: {frames[0]}", frames[0])


def check_layout(path: str, layout: LayoutRecord, layouts: Layouts) -> Iterator[Wrong]:
    """Yield the errors that the examples of a layout reveal in it."""
    for example in layout.examples:
        known = layouts.facts(example.path)
        if known is None or known[0].id != layout.id:
            yield Wrong(path, layout.id, f"does not match its example: {example.path}", example.path)
        elif missing := {name: value for name, value in example.facts.items() if known[1].get(name) != value}:
            yield Wrong(path, layout.id, f"{example.path}: expected {missing}, got {known[1]}", example.path)
    for near in layout.near_misses:
        known = layouts.facts(near)
        if known is not None and known[0].id == layout.id:
            yield Wrong(path, layout.id, f"matches a near miss: {near}", near)


def _memory_use(holdings: Holdings, frames: Sequence[str]) -> str | None:
    """Return the use of memory requested by these frames."""
    stacks = Stacks()
    return holdings.of(stacks, stacks.add("".join(stacks.frame(_frame(text)) for text in frames)))


def _frame(text: str) -> PythonFrame:
    """Return the frame for `file:line:function`. Raise ValueError if it is invalid."""
    file, line, function = text.rsplit(":", 2)
    return PythonFrame(file, int(line), function)


def check_change(path: str, change: ChangeRecord) -> Iterator[Wrong]:
    """Yield the errors that the examples of a change reveal in it."""
    for example in [*change.examples, *change.near_misses]:
        effect = effect_of(change, example.before, example.after) or "none"
        if effect != example.effect:
            yield Wrong(path, change.id, f"example '{example.name}': expected {example.effect}, got {effect}", f"name: {example.name}")


def check_bug(path: str, bug: BugRecord, pack: Pack, build: str) -> Iterator[Wrong]:
    """Yield the errors that the examples of a bug reveal in it; each match is tried again with a release outside its version range."""
    for example in [*bug.examples, *bug.near_misses]:
        outcome, version = _bug_outcome(bug, example.log, pack)
        if outcome != example.expect:
            yield Wrong(path, bug.id, f"example '{example.name}': expected {example.expect}, got {outcome}", f"name: {example.name}")
        elif outcome == "match" and version is not None:
            yield from _at_the_end(path, bug, example, version.removeprefix(build), pack)


def _at_the_end(path: str, bug: BugRecord, example: BugExample, version: str, pack: Pack) -> Iterator[Wrong]:
    other = outside(bug.versions, bug.fixed_in)
    if other is not None and _bug_outcome(bug, example.log.replace(version, other), pack)[0] != "none":
        yield Wrong(path, bug.id, f"example '{example.name}': also named for {other}, which is outside its span", "versions")


def _bug_outcome(bug: BugRecord, log: str, pack: Pack) -> tuple[str, str | None]:
    """Return whether a bug is named in a log, and the version it was named for."""
    named = pipeline.diagnose_logs(["example.log"], pack, text=log.encode()).bugs
    known = next((known for known in named if known.id == bug.id), None)
    return ("none", None) if known is None else ("if" if known.version is None else "match", known.version)


def check_request(path: str, request: RequestRecord, pack: Pack) -> Iterator[Wrong]:
    """Yield the errors that the example and the near miss of a request reveal in it."""
    chosen = _request_of(request.example, pack)
    if chosen != request.id:
        yield Wrong(path, request.id, f"is not chosen for its example: {chosen or 'nothing'} is", "example")
    if _request_of(request.near_miss, pack) == request.id:
        yield Wrong(path, request.id, "is chosen for its near miss", "near_miss")


def _request_of(log: str, pack: Pack) -> str | None:
    """Return the row of the request that failed in a log; `no memory failure` if none did."""
    named = pipeline.diagnose_logs(["example.log"], pack, text=log.encode()).request
    return "no memory failure" if named is None else named.id


def check_check(path: str, check: CheckRecord, pack: Pack) -> Iterator[Wrong]:
    """Yield the errors that the examples of a config check reveal in it."""
    for example in check.examples:
        issues = _config_issues(example, pack)
        if issues != [check.id]:
            why = f"example '{example.name}': expected only this check, got {', '.join(issues) or 'nothing'}"
            yield Wrong(path, check.id, why, f"name: {example.name}")
    for near in check.near_misses:
        if check.id in _config_issues(near, pack):
            yield Wrong(path, check.id, f"matches a near miss: {near.name}", f"name: {near.name}")


def _config_issues(example: CheckExample, pack: Pack) -> list[str]:
    """Return the ids of the issues in the configs of an example."""
    configs = [config for name, text in example.files.items() for config in read_config(name, text.encode()) or []]
    run = resolve_config(configs, [], example.known, pack)
    return [] if run is None else [issue.id for issue in run.issues]


def _wrong(loaded: LoadedSignature, why: str, word: str) -> Wrong:
    return Wrong(loaded.path, loaded.record.id, why, re.split(r"[\n'\"]", word)[0])


def explained(example: CaseExample, pack: Pack) -> tuple[Finding, ...]:
    """Return the findings about one example."""
    if example.environment is not None:
        return environment_findings_of_json(example.environment, pack)
    if example.snapshot is not None:
        return snapshot_findings({f"snapshot.{name}": value for name, value in example.snapshot.items()}, pack)
    return diagnose_example(example, pack).findings


def diagnose_example(example: CaseExample, pack: Pack) -> Diagnosis:
    """Diagnose the log of an example, with its accompanying observations: for a failure among these, the log contains the traceback."""
    log, see = example.log.encode(), Observer(pack)
    if not example.observed:
        return pipeline.diagnose_logs(["example.log"], pack, text=log)
    events = tuple(see.event(name, fields) for name, fields in example.observed.items())
    return pipeline.diagnose_logs([], pack, beside=[ObservedFile(name="run.json", events=events, text=log)])


def is_recognised(record: SignatureRecord, events: Sequence[Event]) -> bool:
    """Return whether an event of this signature is among the events."""
    return any(event.signature == record.id for event in events)


def _equal(value: Any, expected: Any) -> bool:
    if isinstance(value, tuple):
        return [dict(part) if hasattr(part, "items") else part for part in value] == list(expected)
    return str(value) == str(expected)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 90 else line[:87] + "...")
