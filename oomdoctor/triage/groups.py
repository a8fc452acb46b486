"""Group rows: the same failure in one campaign or on one node; who encountered it, when, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from oomdoctor.triage.fingerprint import without_ids
from oomdoctor.triage.row import RECORD_ONLY, JobRow
from oomdoctor.triage.window import ALL, TimeWindow

_MOST_NAMED = 20
"""How many names and nodes are kept per group."""


class Group(Struct, kw_only=True):
    """Jobs with the same failure."""

    id: str
    kind: str
    example: JobRow
    """The representative row: the one with the most information."""
    jobs: int = 0
    certain: int = 0
    days: dict[str, int] = field(default_factory=dict)
    """Jobs per day."""
    users: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    gpu_seconds_lost: int = 0
    recovered: int = 0


class UserSum(Struct, kw_only=True):
    """All jobs of one user."""

    jobs: int = 0
    failed: int = 0
    """Jobs that ran out of memory."""
    groups: dict[str, int] = field(default_factory=dict)
    """The user's jobs in each group."""
    gpu_seconds_lost: int = 0


class Fleet(Struct, kw_only=True):
    """Totals for all jobs in a triage."""

    window: TimeWindow = ALL
    """The time window in which jobs are counted."""
    jobs: int = 0
    files: int = 0
    bytes: int = 0
    failed: int = 0
    """Jobs that ran out of memory."""
    possible: int = 0
    survived: int = 0
    unread: int = 0
    unreadable_files: int = 0
    from_records: int = 0
    """Failures shown only by the scheduler's records."""
    without_log: int = 0
    """Those of them without a log."""
    dated_by: dict[str, int] = field(default_factory=dict)
    """Jobs by the source of their end time (`day_source`)."""
    without_zone: int = 0
    """Jobs whose lines have a time but no time zone, and were read as UTC."""
    contradicted: int = 0
    """Log failures contradicted by the scheduler's record."""
    gpu_seconds_lost: int = 0
    kinds_by_day: dict[str, dict[str, int]] = field(default_factory=dict)
    """Failures per day, by kind of memory."""
    jobs_by_day: dict[str, int] = field(default_factory=dict)
    jobs_by_node: dict[str, int] = field(default_factory=dict)
    failed_by_node: dict[str, int] = field(default_factory=dict)
    failed_by_node_day: dict[str, dict[str, int]] = field(default_factory=dict)
    """Failures per day, by the node that failed first."""
    failed_users_by_node: dict[str, set[str]] = field(default_factory=dict)
    """Users by the node that failed first."""
    failed_names_by_node: dict[str, set[str]] = field(default_factory=dict)
    """Names of failed jobs with unknown users, by the node that failed first."""
    users: dict[str, UserSum] = field(default_factory=dict)
    """All known users; `""` stands for unknown ones."""
    kinds: dict[str, int] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)

    @property
    def is_unread(self) -> bool:
        """Return whether nothing of any job could be read, so that the outcome of all jobs is unknown."""
        return 0 < self.jobs == self.unread

    @property
    def largest(self) -> list[Group]:
        """Return the groups, largest first."""
        return sorted(self.groups.values(), key=lambda group: (-group.jobs, group.id))


def summarise(rows: Iterable[JobRow], window: TimeWindow = ALL) -> Fleet:
    """Return a summary of a window's rows; memory grows with the number of groups and days, not of rows."""
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
