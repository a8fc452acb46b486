"""The figures of a fleet in the text format of Prometheus, for the textfile collector of node_exporter.

Labels have few values each, and what grows with the fleet is capped: users and jobs are never labels. All are gauges, since rows are read
again after new rules and a count can then fall. Format: https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from oomdoctor.api.fleet.sums import FailureKey, FleetSums
from oomdoctor.triage.nodes import bad_nodes

_GROUPS = 50
_SERIES = 200
"""Kinds, messages and partitions that are told apart; what is rarer is counted together."""
_NODES = 50
_OTHER = "other"

Sample = tuple[Mapping[str, str], int]


def exposition(sums: FleetSums) -> str:
    """Return the figures as text, one sample a line."""
    return "".join(_lines(sums))


def _lines(sums: FleetSums) -> Iterator[str]:
    fleet = sums.fleet
    healthy = fleet.jobs - fleet.failed - fleet.possible - fleet.unread
    verdicts = {"yes": fleet.failed, "possible": fleet.possible, "no": healthy, "unread": fleet.unread}
    yield from _metric(
        "jobs", "Jobs by whether they ran out of memory.", [({"memory_failure": name}, count) for name, count in verdicts.items()]
    )
    yield from _metric("memory_failures", "Jobs that ran out of memory.", _failures(sums.failures))
    yield from _metric("memory_failures_new_groups", "Groups that are new in the last run or have come back.", [({}, len(sums.known.news))])
    yield from _metric("group_jobs", f"Jobs in the {_GROUPS} largest groups.", _groups(sums))
    yield from _metric(
        "node_memory_failures",
        "Memory failures on nodes with more than their share.",
        [({"node": node.name}, node.failed) for _, node in zip(range(_NODES), bad_nodes(fleet))],
    )
    yield from _metric("gpu_seconds_lost", "GPU time of jobs that ran out of memory, in seconds.", [({}, fleet.gpu_seconds_lost)])
    yield from _metric("unreadable_files", "Files that could not be read.", [({}, fleet.unreadable_files)])
    if fleet.window.since is not None:
        yield from _metric(
            "triage_window_start_timestamp_seconds", "Only jobs that ended after this time are counted.", [({}, fleet.window.since)]
        )
    if sums.ended is not None:
        yield from _metric("triage_last_run_timestamp_seconds", "Time at which the last run ended.", [({}, sums.ended)])


def _failures(failures: Mapping[FailureKey, int]) -> Iterator[Sample]:
    ordered = sorted(failures, key=lambda key: (-failures[key], key))
    for key in ordered[:_SERIES]:
        yield {"kind": key.kind, "signature": key.signature, "partition": key.partition}, failures[key]
    if rest := sum(failures[key] for key in ordered[_SERIES:]):
        yield {"kind": _OTHER, "signature": _OTHER, "partition": _OTHER}, rest


def _groups(sums: FleetSums) -> Iterator[Sample]:
    for group in sums.fleet.largest[:_GROUPS]:
        yield {"group": group.id, "kind": group.kind, "signature": group.example.signature or ""}, group.jobs


def _metric(name: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP oomdoctor_{name} {text}\n# TYPE oomdoctor_{name} gauge\n"
    for labels, value in samples:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"oomdoctor_{name}{f'{{{told}}}' if told else ''} {value}\n"


def _escaped(text: str) -> str:
    plain = text.encode("utf-8", "replace").decode()
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
