"""Rows -> groups: the same failure of the same campaign, or of one node; who met it, when, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from oomdoctor.triage.fingerprint import without_ids
from oomdoctor.triage.row import RECORD_ONLY, JobRow
from oomdoctor.triage.window import ALL, TimeWindow

_MOST_NAMED = 20
"""Of names and nodes of a group so many are kept."""


class Group(Struct, kw_only=True):
    """Jobs that failed alike."""

    id: str
    kind: str
    example: JobRow
    """The row that stands for it: the one with the most to say."""
    jobs: int = 0
    certain: int = 0
    days: dict[str, int] = field(default_factory=dict)
    """Day -> jobs."""
    users: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    gpu_seconds_lost: int = 0
    recovered: int = 0


class UserSum(Struct, kw_only=True):
    """All jobs of a user."""

    jobs: int = 0
    failed: int = 0
    """Jobs that died of memory."""
    groups: dict[str, int] = field(default_factory=dict)
    """Group -> jobs of the user in it."""
    gpu_seconds_lost: int = 0


class Fleet(Struct, kw_only=True):
    """All jobs of a triage in figures."""

    window: TimeWindow = ALL
    """Of which time the jobs are counted."""
    jobs: int = 0
    files: int = 0
    bytes: int = 0
    failed: int = 0
    """Jobs that died of memory."""
    possible: int = 0
    survived: int = 0
    unread: int = 0
    unreadable_files: int = 0
    from_records: int = 0
    """Failures that only the scheduler's records show."""
    without_log: int = 0
    """Of those the jobs of which no log is at hand."""
    dated_by: dict[str, int] = field(default_factory=dict)
    """What tells when jobs ended (`day_source`) -> jobs."""
    without_zone: int = 0
    """Jobs whose lines tell a time and no zone, and were read as UTC."""
    contradicted: int = 0
    """Failures in a log of which the scheduler's record says otherwise."""
    gpu_seconds_lost: int = 0
    kinds_by_day: dict[str, dict[str, int]] = field(default_factory=dict)
    """Day -> which memory -> failures."""
    jobs_by_day: dict[str, int] = field(default_factory=dict)
    jobs_by_node: dict[str, int] = field(default_factory=dict)
    failed_by_node: dict[str, int] = field(default_factory=dict)
    failed_by_node_day: dict[str, dict[str, int]] = field(default_factory=dict)
    """Node of the first failure -> day -> failures."""
    failed_users_by_node: dict[str, set[str]] = field(default_factory=dict)
    """Node of the first failure -> users."""
    failed_names_by_node: dict[str, set[str]] = field(default_factory=dict)
    """Node of the first failure -> names of jobs whose user nobody knows."""
    users: dict[str, UserSum] = field(default_factory=dict)
    """All users that are known; `""` stands for those who are not."""
    kinds: dict[str, int] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)

    @property
    def is_unread(self) -> bool:
        """Return whether nothing of any job could be read, so that nobody knows what became of them."""
        return 0 < self.jobs == self.unread

    @property
    def largest(self) -> list[Group]:
        """Return the groups, the largest first."""
        return sorted(self.groups.values(), key=lambda group: (-group.jobs, group.id))


def summarise(rows: Iterable[JobRow], window: TimeWindow = ALL) -> Fleet:
    """Return what the rows of a window come to together; memory grows with the number of groups and days, not of rows."""
    fleet = Fleet(window=window)
    for row in rows:
        _count(fleet, row)
        if row.memory_failure == "yes":
            _add(fleet, row)
    return fleet


def _count(fleet: Fleet, row: JobRow) -> None:
    fleet.jobs += 1
    fleet.files += len(row.files)
    fleet.bytes += row.bytes
    fleet.unreadable_files += len(row.unreadable)
    fleet.survived += row.survived
    fleet.unread += row.memory_failure == "unread"
    fleet.possible += row.memory_failure == "possible"
    fleet.users.setdefault(row.user or "", UserSum()).jobs += 1
    if row.day is not None:
        _more(fleet.jobs_by_day, row.day)
    if row.day_source is not None:
        _more(fleet.dated_by, row.day_source)
        fleet.without_zone += row.day_source == "log" and row.zone is None
    for node in row.nodes or ((row.node,) if row.node else ()):
        _more(fleet.jobs_by_node, node)


def _add(fleet: Fleet, row: JobRow) -> None:
    fleet.failed += 1
    fleet.from_records += row.evidence != "log"
    fleet.without_log += row.layout == RECORD_ONLY
    fleet.contradicted += bool(row.contradictions)
    fleet.gpu_seconds_lost += row.gpu_seconds_lost or 0
    _more(fleet.kinds, row.kind)
    if row.day is not None:
        _more(fleet.kinds_by_day.setdefault(row.day, {}), row.kind)
    if row.node is not None:
        _more(fleet.failed_by_node, row.node)
        if row.day is not None:
            _more(fleet.failed_by_node_day.setdefault(row.node, {}), row.day)
        met_by = fleet.failed_names_by_node if row.user is None else fleet.failed_users_by_node
        met_by.setdefault(row.node, set()).add(row.user or row.name or row.job)
    name = row.group or row.job
    user = fleet.users[row.user or ""]
    user.failed += 1
    user.gpu_seconds_lost += row.gpu_seconds_lost or 0
    _more(user.groups, name)
    group = fleet.groups.get(name)
    if group is None:
        group = fleet.groups[name] = Group(id=name, kind=row.kind, example=row)
    elif _telling(row) > _telling(group.example):
        group.example = row
    group.jobs += 1
    group.certain += row.certainty == "certain"
    group.recovered += row.recovered
    group.gpu_seconds_lost += row.gpu_seconds_lost or 0
    for counts, value, most in (
        (group.days, row.day, None),
        (group.users, row.user, None),
        (group.names, None if row.name is None else without_ids(row.name), _MOST_NAMED),
        (group.nodes, row.node, _MOST_NAMED),
    ):
        if value is not None and (value in counts or most is None or len(counts) < most):
            _more(counts, value)


def _telling(row: JobRow) -> tuple[bool, bool, bool, bool]:
    return row.evidence == "log", row.certainty == "certain", row.requested_bytes is not None, row.node is not None


def _more(counts: dict[str, int], value: str) -> None:
    counts[value] = counts.get(value, 0) + 1
