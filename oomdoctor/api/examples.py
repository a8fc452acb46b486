"""The examples inside the rules, run: each must be recognised with its figures, each near miss must stay quiet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oomdoctor.api import pipeline
from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.event import Event
from oomdoctor.comparing.changes import effect_of
from oomdoctor.knowledge.load import LoadedSignature
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.change import ChangeRecord
from oomdoctor.knowledge.records.problem import CaseExample, ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.machine.findings import environment_findings_of_json
from oomdoctor.parse import reading
from oomdoctor.parse.recogniser import Recogniser


def check_signature(loaded: LoadedSignature, recogniser: Recogniser) -> Iterator[str]:
    """What the examples of a signature show to be wrong with it."""
    record = loaded.record
    for example in record.examples:
        events = reading.events(example.text, recogniser)
        same = [event for event in events if event.signature == record.id]
        if not same:
            said = ", ".join(sorted({event.signature for event in events})) or "nothing"
            yield f"does not recognise its example ({said} did): {_short(example.text)}"
            continue
        for name, wanted in example.fields.items():
            if not any(_equal(event.fields.get(name, event.rank if name == "rank" else None), wanted) for event in same):
                got = [event.fields.get(name) for event in same]
                yield f"field {name}: expected {wanted!r}, found {got!r} in {_short(example.text)}"
    for near in record.near_misses:
        if any(event.signature == record.id for event in reading.events(near.text, recogniser)):
            yield f"fires on a near miss ({near.why}): {_short(near.text)}"


def check_problem(problem: ProblemRecord, pack: Pack) -> Iterator[str]:
    """What the examples of a problem show to be wrong with it."""
    for example in [*problem.examples, *problem.near_misses]:
        found = explained(example, pack)
        finding = next((one for one in found if one.id == problem.id), None)
        said = "none" if finding is None else "unknown" if finding.unknowns else "match"
        if said != example.expect:
            others = ", ".join(one.id for one in found) or "nothing"
            yield f"example '{example.name}': expected {example.expect}, came to {said} (findings: {others})"


def check_change(change: ChangeRecord) -> Iterator[str]:
    """What the examples of a change show to be wrong with it."""
    for example in [*change.examples, *change.near_misses]:
        effect = effect_of(change, example.before, example.after) or "none"
        if effect != example.effect:
            yield f"example '{example.name}': expected {example.effect}, came to {effect}"


def explained(example: CaseExample, pack: Pack) -> tuple[Finding, ...]:
    """What the rules make of one example."""
    if example.environment is not None:
        return environment_findings_of_json(example.environment, pack)
    return pipeline.diagnose_logs(["example.log"], pack, text=example.log.encode()).findings


def is_recognised(record: SignatureRecord, events: Sequence[Event]) -> bool:
    """Whether an event of this signature is among the events."""
    return any(event.signature == record.id for event in events)


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple):
        return [dict(one) if hasattr(one, "items") else one for one in found] == list(wanted)
    return str(found) == str(wanted)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 90 else line[:87] + "...")
