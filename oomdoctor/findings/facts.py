"""The named facts that rules can query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from oomdoctor.case.case import Verdict
from oomdoctor.case.event import Event, Kind, Value, card_share
from oomdoctor.case.incident import Incident
from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.series import memory_series, series_course
from oomdoctor.knowledge.records.framework import FrameworkCore, LogMarks

_RUNS = "runs"
"""The field that names a framework (knowledge/rows/program_marks.py)."""
_TAIL = 20_000
"""Bytes at the end of a log that are searched for what a framework prints all the time."""
_SHARDS = "hf-checkpoint-shards"


def log_facts(events: Sequence[Event], frameworks: Sequence[FrameworkCore], tails: Sequence[bytes] = ()) -> dict[str, Value]:
    """Return what context messages show about the run's settings and machine, as `log.<name>`.

    Each field has its last value, plus what several messages show together. `tails` are the ends of the logs.
    """
    out: dict[str, Value] = {}
    for event in events:
        if event.kind is Kind.CONTEXT:
            for name, value in event.fields.items():
                out[f"log.{name}"] = value
    out.pop(f"log.{_RUNS}", None)
    bars = sum(event.signature == _SHARDS and event.fields.get("load_percent") == 100 for event in events)
    if bars:
        out["log.shard_bars"] = bars
    out.update(_smi(events))
    out.update(_tables(events))
    series = memory_series(events)
    if series_course(series) != "none" and "log.memory_series" not in out:
        out["log.memory_series"] = series_course(series)
        out["log.series_highest_bytes"] = max(series)
    if any(event.computes == "picture-encoder" for event in events):
        out["log.vision"] = "true"
    framework = _named_framework(events, frameworks, tails)
    if framework is not None:
        out["log.framework"] = framework
    return out


def _named_framework(events: Sequence[Event], frameworks: Sequence[FrameworkCore], tails: Sequence[bytes]) -> str | None:
    """Return the outermost framework shown by the log: by what only it prints, or by name in frames and other recognized messages."""
    shown, texts = {event.fields.get(_RUNS) for event in events}, _naming(events)
    ends = [tail[-_TAIL:].decode("utf-8", "replace") for tail in tails]

    def is_shown(name: str, marks: LogMarks) -> bool:
        return (
            name in shown
            or (marks.pattern is not None and any(re.search(marks.pattern, text) for text in texts if _may_hold(text, marks.needs)))
            or (marks.tail is not None and any(map(re.compile(marks.tail).search, ends)))
        )

    # If a server runs inside a trainer, the trainer's keys configure it.
    named = sorted(
        (record.in_logs.purpose == "inference", record.in_logs.order, record.framework) for record in frameworks if record.in_logs
    )
    marks = {record.framework: record.in_logs for record in frameworks if record.in_logs}
    return next((name for _, _, name in named if is_shown(name, marks[name])), None)


def _may_hold(text: str, needs: Sequence[str]) -> bool:
    return not needs or any(need in text for need in needs)


def _relative_to_series(root: Event, log: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return `derived.over_series`: what was allocated at the failure, as a multiple of the highest value the run had printed."""
    highest, allocated = log.get("log.series_highest_bytes"), root.size("allocated_bytes")
    return {"derived.over_series": round(allocated / highest, 2)} if isinstance(highest, int) and highest and allocated else {}


def _relative_to_pool(root: Event, log: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return `derived.whole_pool_refused`: whether the request is the whole pool that the framework had room for (printed in MiB)."""
    pool, requested = log.get("log.limit_bytes"), root.size("requested_bytes")
    return {"derived.whole_pool_refused": abs(requested - pool) < 1 << 20} if isinstance(pool, int) and pool and requested else {}


def _compared_with_peers(log: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return how far one process or rank differs from the others in its run, if a recorder counted them."""
    pairs = {
        "derived.largest_process_share": ("log.largest_process_bytes", "log.run_rss_bytes"),
        "derived.first_rank_over_others": ("log.first_rank_bytes", "log.other_ranks_most_bytes"),
    }
    known = {name: (log.get(part), log.get(whole)) for name, (part, whole) in pairs.items()}
    return {
        name: round(part / whole, 4)
        for name, (part, whole) in known.items()
        if isinstance(part, int) and isinstance(whole, int) and whole > 0
    }


def _smi(events: Sequence[Event]) -> dict[str, Value]:
    """Return `log.smi_unlisted_bytes`: memory that nvidia-smi counts as used on a GPU but attributes to no process in its table."""
    listed: dict[Value | None, int] = {}
    for event in events:
        if event.signature == "nvidia-smi-process-row":
            gpu = event.fields.get("gpu_index")
            listed[gpu] = listed.get(gpu, 0) + (event.size("used_bytes") or 0)
    rows = [event for event in events if event.signature == "nvidia-smi-gpu-row" and event.fields.get("table") == "whole"]
    rest = [(event.size("used_bytes") or 0) - listed.get(event.fields.get("gpu_index"), 0) for event in rows]
    return {"log.smi_unlisted_bytes": max(rest)} if rest and max(rest) > 0 else {}


def _tables(events: Sequence[Event]) -> dict[str, Value]:
    """Return `log.fullest_card_share`: used over total memory of the fullest GPU in a pasted table."""
    shares = [round(share, 4) for event in events if (share := card_share(event)) is not None]
    return {"log.fullest_card_share": max(shares)} if shares else {}


def _naming(events: Sequence[Event]) -> list[str]:
    """Return the texts in which a framework's name shows that it is running: frames, and what it prints itself."""
    return [text for event in events[:400] for text in (event.frame, event.text[:300], event.worker) if text]


def facts(incidents: Sequence[Incident], verdict: Verdict, log: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return every fact of a case, by name. A name that is missing here is unknown."""
    out: dict[str, Fact] = {"verdict.memory_failure": verdict.memory_failure, "verdict.kind": verdict.kind.value, **log}
    if incidents:
        first = incidents[0]
        out["incident.kind"] = first.kind.value
        out["incident.certainty"] = first.certainty.value
        out["incident.survived"] = first.survived
        out["incident.signature"] = first.root.signature
        out["incident.phase"] = first.phase
        out["incident.computes"] = first.computes
        out["incident.frame"] = first.root.frame
        out["incident.count"] = first.count
        out["incident.ranks"] = len(first.ranks)
        out.update({f"event.{name}": value for name, value in first.root.fields.items()})
        out.update({f"derived.{name}": value for name, value in first.derived.items() if value is not None})
        out.update(_relative_to_series(first.root, log))
        out.update(_relative_to_pool(first.root, log))
        out.update(_compared_with_peers(log))
    return out
