"""The groups of a triage: their jobs, and the full diagnosis of each group's representative."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.api.diagnose import diagnose
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.errors import UsageError
from oomdoctor.triage.groups import Fleet, Group, summarise
from oomdoctor.triage.log_file import MEMBER
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.known_groups import KnownGroups, known_groups, last_run
from oomdoctor.triage.store.parts import Parts
from oomdoctor.triage.window import ALL, TimeWindow

_MOST_GROUPS = 200
_MOST_JOBS = 1000
_MOST_FILES = 16


class GroupShown(Struct, frozen=True, kw_only=True):
    """A group, its newest jobs, and a diagnosis."""

    group: Group
    number: int
    """The largest group is 1."""
    known: KnownGroups
    jobs: tuple[JobRow, ...]
    diagnosis: Diagnosis | None
    """Of the group's representative; None if its log no longer exists, or is inside another file."""
    store: str = ""
    """The folder of the triage it belongs to."""
    ended: int | None = None
    """When that ended, in seconds since 1970."""


class FleetShown(Struct, frozen=True, kw_only=True):
    """All jobs of a triage, and its largest groups."""

    fleet: Fleet
    known: KnownGroups
    groups: tuple[GroupShown, ...]


def show_group(store: str, number: int, *, window: TimeWindow = ALL, rules: str | None = None) -> GroupShown:
    """Return the group with a number, as numbered within a window. Raise UsageError if the store has no such group."""
    parts = Parts(os.path.join(store, "parts"))
    fleet = summarise(parts.rows(window), window)
    if not 1 <= number <= len(fleet.groups):
        raise UsageError(f"there is no group {number}: the triage in {store} has {len(fleet.groups)}")
    (shown,) = _shown({number: fleet.largest[number - 1]}, parts, window, known_groups(store), rules)
    return replace(shown, store=os.path.abspath(store), ended=last_run(store))


def show_fleet(store: str, *, window: TimeWindow = ALL, rules: str | None = None) -> FleetShown:
    """Return all jobs in figures, and the two hundred largest groups."""
    parts = Parts(os.path.join(store, "parts"))
    fleet = summarise(parts.rows(window), window)
    known = known_groups(store)
    largest = dict(enumerate(fleet.largest[:_MOST_GROUPS], 1))
    return FleetShown(fleet=fleet, known=known, groups=tuple(_shown(largest, parts, window, known, rules)))


def _shown(groups: Mapping[int, Group], parts: Parts, window: TimeWindow, known: KnownGroups, rules: str | None) -> Iterator[GroupShown]:
    newest: dict[str, list[tuple[int, int, JobRow]]] = {group.id: [] for group in groups.values()}
    for number, row in enumerate(parts.rows(window)):
        jobs = newest.get(row.group or row.job) if row.memory_failure == "yes" else None
        if jobs is not None:
            heapq.heappush(jobs, (row.ended or 0, number, replace(row, files=(), versions={})))
            if len(jobs) > _MOST_JOBS:
                heapq.heappop(jobs)
    for number, group in groups.items():
        rows = (row for *_, row in sorted(newest[group.id], key=itemgetter(0, 1), reverse=True))
        yield GroupShown(group=group, number=number, known=known, jobs=tuple(rows), diagnosis=_diagnosis(group.example, rules))


def _diagnosis(row: JobRow, rules: str | None) -> Diagnosis | None:
    """Return the diagnosis of a job from its files: the one with the failure first."""
    files = [row.first_file, *(path for path in row.files if path != row.first_file)] if row.first_file is not None else []
    there = [path for path in files if path is not None and MEMBER not in path and os.path.isfile(path)]
    if not there or there[0] != row.first_file or row.layout in _EXPORTED:
        return None
    return diagnose(there[:_MOST_FILES], rules=rules)


_EXPORTED = frozenset({"journald", "loki", "kubernetes-shipper", "cloudwatch", "opensearch", "cloud-logging"})
