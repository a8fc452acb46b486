"""Contradictions between a job's scheduler record and its log: they are named in the row, and neither is adjusted to match the other."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.event import Kind
from oomdoctor.triage.row import Contradiction, JobRow
from oomdoctor.triage.scheduler.record import JobRecord

_ON_A_CARD = (Kind.DEVICE_OOM.value, Kind.MASKED_DEVICE_OOM.value)
_BEFORE_THE_END = frozenset({"PENDING", "RUNNING", "SUSPENDED", "Pending", "Running"})
"""Slurm states and Kubernetes phases."""


def contradictions(row: JobRow, records: Sequence[JobRecord]) -> tuple[Contradiction, ...]:
    """Return which facts about a failure in the log the records contradict; nothing if the log shows none."""
    if row.memory_failure != "yes" or row.evidence != "log" or not records:
        return ()
    nodes = {_short(node) for record in records for node in record.nodes}
    runs = any(record.state in _BEFORE_THE_END for record in records)
    told: dict[Contradiction, bool] = {
        "ended-well": not runs and not row.recovered and all(record.exit_code == 0 for record in records),
        "not-ended": runs,
        "host-memory": row.kind in _ON_A_CARD and any(record.out_of_memory for record in records),
        "other-node": row.node is not None and bool(nodes) and _short(row.node) not in nodes,
    }
    return tuple(name for name, is_so in told.items() if is_so)


def _short(node: str) -> str:
    return node.split(".")[0].lower()
