"""A group of failures in words: what failed, whose it is, when, and what a restart needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from oomdoctor.case.event import Kind
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.texts import PHASES
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.fingerprint import LEAST_OTHERS
from oomdoctor.triage.groups import Group
from oomdoctor.triage.row import RECORD_ONLY, JobRow
from oomdoctor.triage.store.known_groups import KnownGroups
from oomdoctor.units import format_size

LONGEST_ID = 24
"""Of a job's id so much is shown: that of a container has 64 characters."""
_NAMED = 2
_SCHEDULERS = {"sacct": "Slurm", "pod": "Kubernetes", "event": "Kubernetes"}
_MANY = 3
"""From so many jobs on that failed alike, and none of which a later start got past, a failure is no accident."""


def failure_of(row: JobRow, wording: Wording) -> str:
    """Return what ran out, when in the run, and the figures of the request."""
    memory = texts.MEMORY.get(row.kind)
    parts = [row.kind if memory is None else wording.say(memory)]
    if row.phase is not None:
        parts.append(wording.say(PHASES.get(row.phase, PHASES["generic"]), phase=row.phase))
    if is_held_by_others(row):
        parts.append(wording.say(texts.HELD))
    elif row.requested_bytes is not None:
        parts.append(wording.say(texts.ASKED, size=format_size(row.requested_bytes)))
        if row.free_bytes is not None:
            parts.append(wording.say(texts.FREE, size=format_size(row.free_bytes)))
    if row.layout == RECORD_ONLY:
        parts.append(wording.say(texts.ONLY_RECORD, source=_SCHEDULERS.get(row.evidence or "", row.evidence)))
    if row.total_bytes is not None:
        parts.append(wording.say(texts.OF, size=format_size(row.total_bytes)))
    return wording.comma.join(parts)


def is_held_by_others(row: JobRow) -> bool:
    """Return whether other processes held a good part of the card: the message counts them, or several campaigns met it."""
    if row.retry == "other-node":
        return True
    return bool(row.total_bytes) and (row.used_by_others_bytes or 0) >= LEAST_OTHERS * (row.total_bytes or 0)


def whose(group: Group, wording: Wording) -> str:
    """Return the users, the names and the nodes of a group."""
    node = next(iter(group.nodes)) if len(group.nodes) == 1 and group.jobs > 1 else None
    parts = [named(group.users, wording), named(group.names, wording), node or ""]
    return " · ".join(part for part in parts if part)


def told_apart(groups: Sequence[Group], wording: Wording) -> list[str]:
    """Return what failed and whose it is of each group; those that would read alike with the node, the folder or the job that differs."""
    lines = [" · ".join(part for part in (failure_of(group.example, wording), whose(group, wording)) if part) for group in groups]
    for place_of in (_node, _folder, partial(_job, wording)):
        alike: dict[str, set[str]] = {}
        for line, group in zip(lines, groups):
            alike.setdefault(line, set()).add(place_of(group))
        lines = [f"{line} · {place}" if len(alike[line]) > 1 and (place := place_of(group)) else line for line, group in zip(lines, groups)]
    return lines


def _node(group: Group) -> str:
    return next(iter(group.nodes)) if len(group.nodes) == 1 else ""


def _folder(group: Group) -> str:
    """Return the name of the folder in which the log of a group's example lies."""
    folder = os.path.basename(os.path.dirname(group.example.first_file or next(iter(group.example.files), "")))
    return f"{folder}/" if folder else ""


def _job(wording: Wording, group: Group) -> str:
    return wording.say(texts.JOB, id=group.example.native[:LONGEST_ID])


def named(counts: Mapping[str, int], wording: Wording) -> str:
    """Return the commonest names, and how many there are beside them."""
    names = sorted(counts, key=lambda name: (-counts[name], name))
    shown = wording.item_comma.join(names[:_NAMED])
    return shown if len(names) <= _NAMED else wording.say(texts.USERS_MORE, names=shown, n=len(names) - _NAMED)


def news(group: Group, known: KnownGroups, wording: Wording) -> str:
    """Return whether the last run was the first to know a group, or saw it come back; of a first run, to which all are new, nothing."""
    seen = known.groups.get(group.id)
    if seen is None or known.is_first:
        return ""
    return wording.say(texts.NEW) if seen.is_new else wording.say(texts.BACK) if seen.came_back is not None else ""


def when(days: Sequence[str], wording: Wording) -> str:
    """Return the first and the last day of a group."""
    if not days:
        return ""
    first, last = min(days), max(days)
    return wording.say(texts.ON, day=first) if first == last else wording.say(texts.FROM_TO, first=first, last=last)


def restart_of(group: Group, wording: Wording) -> str:
    """Return what a restart of a job of a group needs: of one that many met alike, no start alone is a cure."""
    return wording.say(texts.COMES_AGAIN) if comes_again(group) else restart(group.example, wording)


def comes_again(group: Group) -> bool:
    """Return whether so many jobs failed alike that a restart alone is no cure."""
    return group.example.retry == "retry" and group.jobs >= _MANY and not group.recovered


def restart(row: JobRow, wording: Wording) -> str:
    """Return what a restart needs; nothing where nobody knows."""
    is_shm = row.kind == Kind.SHM_OOM.value and row.retry == "more-memory"
    text = texts.LARGER_SHM if is_shm else texts.RETRY.get(row.retry)
    return "" if text is None else wording.say(text)
