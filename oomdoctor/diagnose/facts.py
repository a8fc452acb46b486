"""The named facts that rules can ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomdoctor.case.case import Verdict
from oomdoctor.case.events import Event, Kind, Value
from oomdoctor.case.incident import Incident
from oomdoctor.diagnose.match import Fact

_ADDED_UP = ("huggingface-shards-loaded", "hf-shards-loaded", "loading-checkpoint-shards")


def log_facts(events: Sequence[Event]) -> dict[str, Value]:
    """What messages of context show of the run's settings and machine: the last value of each field, as `log.<name>`."""
    out: dict[str, Value] = {}
    for event in events:
        if event.kind is Kind.CONTEXT:
            for name, value in event.fields.items():
                out[f"log.{name}"] = value
    return out


def facts(found: Sequence[Incident], verdict: Verdict, log: Mapping[str, Value]) -> dict[str, Fact]:
    """Every fact of a case, by name. A name that is missing here is unknown."""
    out: dict[str, Fact] = {"verdict.memory_failure": verdict.memory_failure, "verdict.kind": verdict.kind.value, **log}
    if found:
        first = found[0]
        out["incident.kind"] = first.kind.value
        out["incident.certainty"] = first.certainty.value
        out["incident.survived"] = first.survived
        out["incident.signature"] = first.root.signature
        out["incident.phase"] = first.phase
        out["incident.frame"] = first.root.frame
        out["incident.count"] = first.count
        out["incident.ranks"] = len(first.ranks)
        out.update({f"event.{name}": value for name, value in first.root.fields.items()})
        out.update({f"derived.{name}": value for name, value in first.derived.items() if value is not None})
    return out
