"""The named facts that rules can ask about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from oomdoctor.case.case import Verdict
from oomdoctor.case.events import Event, Kind, Value
from oomdoctor.case.incident import Incident
from oomdoctor.diagnose.match import Fact
from oomdoctor.diagnose.series import memory_series

_SHARDS = "hf-checkpoint-shards"
_VISION = re.compile(r"vis(?:ual|ion)|image|pixel", re.IGNORECASE)


def log_facts(events: Sequence[Event]) -> dict[str, Value]:
    """What messages of context show of the run's settings and machine, as `log.<name>`: the last value of each field, and
    what several of them show together."""
    out: dict[str, Value] = {}
    for event in events:
        if event.kind is Kind.CONTEXT:
            for name, value in event.fields.items():
                out[f"log.{name}"] = value
    bars = sum(event.signature == _SHARDS and event.fields.get("load_percent") == 100 for event in events)
    if bars:
        out["log.shard_bars"] = bars
    series = memory_series(events)
    if series != "none":
        out["log.memory_series"] = series
    if any(event.frame and _VISION.search(event.frame) for event in events):
        out["log.vision"] = "true"
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
