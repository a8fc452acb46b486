"""What a restart needs after a job ran out of memory.

`stop` and `smaller` are said only where the same thing would happen again: the failure is certain, and the settings alone were refused, or
its message accounts for the card, and it came while the model was loaded, at the first step, or twice at one step. Where a message
leaves that open, the answer is `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.event import Certainty, Kind, Value
from oomdoctor.case.incident import Incident
from oomdoctor.findings.derived import Figures
from oomdoctor.triage.fingerprint import LEAST_OTHERS, fingerprint
from oomdoctor.triage.row import Retry

_START_UP = frozenset({"startup", "model-load", "profiling", "kv-cache-allocation", "graph-capture"})
_OWN_COURSE = _START_UP | {"data-loading", "evaluation", "generation", "inference", "checkpoint-save", "checkpoint-load"}
"""Phases whose memory use does not follow from the training steps before them."""
_FIRST_STEP = 1
"""Completed steps: optimizer states are created with the first update, so the second step is the first with full memory."""
_LATE = 10
"""From this step on, a run had done the same work many times: whatever failed was larger than what came before it."""
_FRAGMENTED = 0.1
"""From this share of GPU memory, unused reserved memory counts as fragmented (rules/problems/device/fragmentation.yaml)."""
_REFUSED = "refused"
"""Set by messages (rules/signatures) with which a program rejects its settings before it allocates memory."""
_BATCH = ("log.per_device_train_batch_size", "log.train_micro_batch_size_per_gpu", "log.micro_batch_size", "log.batch_size")


class FailedStart(Struct, frozen=True, kw_only=True):
    """One start of a job that ran out of memory."""

    incident: Incident
    figures: Figures
    """The figures derived from the message (findings/derived.py)."""
    step: int | None = None
    """Training steps shown in its log before the failure."""
    has_trained: bool = False
    """Whether its log shows more than a first step before the failure, whatever the last counter says: bars restart with each epoch."""
    settings: Mapping[str, Value] = {}


def retry_of(start: FailedStart, others: Sequence[FailedStart] = (), *, recovered: bool = False) -> Retry:
    """Return what a restart needs; `others` are the job's other failed starts, `recovered` means that a later one succeeded."""
    kind = start.incident.kind
    if recovered:
        return "retry"
    if kind in (Kind.HOST_OOM, Kind.SHM_OOM):
        # The sender of a bare signal is not known: more memory does not help against a scheduler or a person.
        return "unknown" if "ended_by" in start.incident.root.fields else "more-memory"
    if kind is not Kind.DEVICE_OOM or start.incident.certainty is not Certainty.CERTAIN:
        return "unknown"
    held = others_share(start)
    if held is not None and held >= LEAST_OTHERS:
        return "other-node"
    if _is_fragmented(start.figures):
        return "retry"
    if _is_refused_as_set(start.incident):
        return "stop"
    if held is None or start.figures.get("free_covers_request") is True:
        return "unknown"
    if _at_start_up(start):
        return "stop"
    if _in_first_step(start) or any(_is_again(start, other) for other in others):
        return "smaller" if _can_shrink(start.settings) else "stop"
    return "retry" if _is_late(start) else "unknown"


def others_share(start: FailedStart) -> float | None:
    """Return the share of GPU memory used by other processes; None if the message does not show it."""
    root, figures = start.incident.root, start.figures
    told = figures.get("other_share")
    if isinstance(told, float):
        return 0.0 if figures.get("equal_neighbours") else told
    total, free, own = root.size("total_bytes"), root.size("free_bytes"), root.size("process_bytes")
    if own is None and root.fields.get(_REFUSED) is not None:
        own = 0
    if total and free is not None and own is not None:
        return max(0, total - free - own) / total
    rest = figures.get("unaccounted_share")
    return rest if isinstance(rest, float) and rest < LEAST_OTHERS else None


def _is_refused_as_set(incident: Incident) -> bool:
    """Return whether the settings alone decide it: they are rejected before the run, or request more than the entire GPU memory."""
    requested, total = incident.root.size("requested_bytes"), incident.root.size("total_bytes")
    return incident.root.fields.get(_REFUSED) is not None or (requested is not None and total is not None and requested > total > 0)


def _is_fragmented(figures: Figures) -> bool:
    share = figures.get("unallocated_share")
    would_do = figures.get("free_and_unallocated_cover_request") is True and figures.get("free_covers_request") is False
    return would_do and isinstance(share, float) and share >= _FRAGMENTED


def _at_start_up(start: FailedStart) -> bool:
    return start.incident.phase in _START_UP and (start.step or 0) <= _FIRST_STEP and not start.has_trained


def _in_first_step(start: FailedStart) -> bool:
    """Return whether a counter shows it: a log without one does not tell how far the run had got."""
    known = start.incident.phase not in _OWN_COURSE and start.step is not None
    return known and (start.step or 0) <= _FIRST_STEP and not start.has_trained


def _is_again(start: FailedStart, other: FailedStart) -> bool:
    """Return whether two starts failed at the same step and place, with the same request: a counter alone may be as coarse as its lines."""
    requested = start.incident.root.size("requested_bytes")
    return (
        start.step is not None
        and start.step == other.step
        and requested is not None
        and requested == other.incident.root.size("requested_bytes")
        and fingerprint(start.incident) == fingerprint(other.incident)
    )


def _is_late(start: FailedStart) -> bool:
    return start.incident.phase not in _OWN_COURSE and start.step is not None and start.step >= _LATE


def _can_shrink(settings: Mapping[str, Value]) -> bool:
    return any(isinstance(size, int) and size > 1 for size in map(settings.get, _BATCH))
