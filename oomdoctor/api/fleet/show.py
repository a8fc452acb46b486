"""One group of a triage: its jobs, and the full diagnosis of the one that stands for it."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.api.diagnose import diagnose
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.errors import UsageError
from oomdoctor.triage.groups import Fleet, Group, summarise
from oomdoctor.triage.log_file import MEMBER
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.known_groups import KnownGroups, known_groups
from oomdoctor.triage.store.parts import Parts

_MOST_JOBS = 1000
_MOST_FILES = 16


class GroupShown(Struct, frozen=True, kw_only=True):
    """A group, its newest jobs, and a diagnosis."""

    fleet: Fleet
    group: Group
    number: int
    known: KnownGroups
    jobs: tuple[JobRow, ...]
    diagnosis: Diagnosis | None
    """Of the job that stands for the group; None where its log is not there any more, or lies inside another file."""


def show_group(store: str, number: int, *, rules: str | None = None) -> GroupShown:
    """Return the group of a number, the largest being 1. Raise UsageError where the store has no such group."""
    parts = Parts(os.path.join(store, "parts"))
    fleet = summarise(parts.rows())
    if not 1 <= number <= len(fleet.groups):
        raise UsageError(f"there is no group {number}: the triage in {store} has {len(fleet.groups)}")
    group = fleet.largest[number - 1]
    newest = heapq.nlargest(_MOST_JOBS, _jobs_of(group, parts), key=lambda row: (row.ended or 0, row.job))
    known = known_groups(store)
    return GroupShown(
        fleet=fleet, group=group, number=number, known=known, jobs=tuple(newest), diagnosis=_diagnosis(group.example, rules)
    )  # fmt: skip


def _jobs_of(group: Group, parts: Parts) -> Iterator[JobRow]:
    return (row for row in parts.rows() if row.memory_failure == "yes" and (row.group or row.job) == group.id)


def _diagnosis(row: JobRow, rules: str | None) -> Diagnosis | None:
    """Return the diagnosis of a job from its files: the one of the failure first."""
    files = [row.first_file, *(path for path in row.files if path != row.first_file)] if row.first_file is not None else []
    there = [path for path in files if path is not None and MEMBER not in path and os.path.isfile(path)]
    if not there or there[0] != row.first_file or row.layout in _EXPORTED:
        return None
    return diagnose(there[:_MOST_FILES], rules=rules)


_EXPORTED = frozenset({"journald", "loki", "kubernetes-shipper", "cloudwatch", "opensearch", "cloud-logging"})
