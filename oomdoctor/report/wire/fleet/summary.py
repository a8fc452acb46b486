"""`oomdoctor/fleet/v1`: what a triage came to, for programs. Additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.triage.group_words import failure_of
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import Fleet, Group
from oomdoctor.triage.nodes import BadNode, bad_nodes
from oomdoctor.triage.regressions import began_on
from oomdoctor.triage.row import Retry
from oomdoctor.triage.store.known_groups import KnownGroup, KnownGroups

Tag = Literal["oomdoctor/fleet/v1"]
_GROUPS = 1000
_LINE = 400
_USERS = 20


class FleetGroupV1(Struct, frozen=True, kw_only=True):
    """Jobs that failed alike."""

    number: int
    """As in `oomdoctor triage show`: the largest is 1."""
    id: str
    """The `group` of its rows."""
    jobs: int
    certain: int
    recovered: int
    """A later start of so many went well."""
    kind: str
    told: str
    """What failed, in a few words."""
    signature: str | None
    text: str | None
    """The message of one of them, without secrets."""
    first_seen: str | None
    """YYYY-MM-DD, as all days."""
    last_seen: str | None
    is_new: bool
    """No earlier run of this store knew it; in a first run all are new."""
    came_back: str | None
    """The day of its first failure after seven days or more with none, where no earlier run told of it."""
    began_late: str | None
    """Its first day, where it is large and began in the last days that the logs cover."""
    days: dict[str, int]
    """Day -> jobs."""
    users: dict[str, int]
    """User -> jobs, of the twenty users with most."""
    names: dict[str, int]
    nodes: dict[str, int]
    retry: Retry
    """What a restart needs."""
    gpu_seconds_lost: int


class FleetNodeV1(Struct, frozen=True, kw_only=True):
    """A node with more failures than its share."""

    name: str
    jobs: int
    failed: int
    expected: float
    """So many failures would be usual for its jobs."""
    users: int


class FleetDayV1(Struct, frozen=True, kw_only=True):
    """One day."""

    day: str
    jobs: int
    failed: dict[str, int]
    """Which memory -> jobs that died of it."""


class FleetV1(Struct, frozen=True, kw_only=True):
    """What the jobs of a triage come to."""

    schema: Tag
    since: int | None
    """Jobs that ended since then are counted, in seconds since 1970; null: all."""
    until: int | None
    jobs: int
    files: int
    bytes: int
    failed: int
    """Jobs that died of memory."""
    possible: int
    survived: int
    """Jobs that ran short of memory and went on."""
    unread: int
    """Jobs of which nothing could be read."""
    unreadable_files: int
    from_records: int
    """Failures that only the scheduler's records show."""
    without_log: int
    """Of those the jobs of which no log is at hand."""
    dated_by: dict[str, int]
    """What tells when jobs ended (record, log, file) -> jobs."""
    without_zone: int
    """Jobs whose lines tell a time and no zone, and were read as UTC."""
    contradicted: int
    """Failures in a log of which the scheduler's record says otherwise."""
    gpu_seconds_lost: int
    kinds: dict[str, int]
    """Which memory -> jobs that died of it."""
    is_first_run: bool
    """No run of this store ended before."""
    groups_in_all: int
    groups: tuple[FleetGroupV1, ...]
    """The thousand largest."""
    nodes: tuple[FleetNodeV1, ...]
    days: tuple[FleetDayV1, ...]


def convert_fleet(fleet: Fleet, known: KnownGroups, wording: Wording) -> FleetV1:
    """Convert what a triage came to."""
    return FleetV1(
        schema="oomdoctor/fleet/v1",
        since=fleet.window.since,
        until=fleet.window.until,
        jobs=fleet.jobs,
        files=fleet.files,
        bytes=fleet.bytes,
        failed=fleet.failed,
        possible=fleet.possible,
        survived=fleet.survived,
        unread=fleet.unread,
        unreadable_files=fleet.unreadable_files,
        from_records=fleet.from_records,
        without_log=fleet.without_log,
        dated_by=fleet.dated_by,
        without_zone=fleet.without_zone,
        contradicted=fleet.contradicted,
        gpu_seconds_lost=fleet.gpu_seconds_lost,
        kinds=fleet.kinds,
        is_first_run=known.is_first,
        groups_in_all=len(fleet.groups),
        groups=tuple(_group(fleet, group, number, known, wording) for number, group in enumerate(fleet.largest[:_GROUPS], 1)),
        nodes=tuple(map(_node, bad_nodes(fleet))),
        days=tuple(_day(fleet, day) for day in sorted(fleet.jobs_by_day)),
    )


def _node(node: BadNode) -> FleetNodeV1:
    return FleetNodeV1(name=node.name, jobs=node.jobs, failed=node.failed, expected=node.expected, users=node.users)


def _day(fleet: Fleet, day: str) -> FleetDayV1:
    return FleetDayV1(day=day, jobs=fleet.jobs_by_day[day], failed=fleet.kinds_by_day.get(day, {}))


def _group(fleet: Fleet, group: Group, number: int, known: KnownGroups, wording: Wording) -> FleetGroupV1:
    example = group.example
    seen = known.groups.get(group.id, KnownGroup(first_seen=min(group.days, default=None), last_seen=max(group.days, default=None)))
    return FleetGroupV1(
        number=number,
        id=group.id,
        jobs=group.jobs,
        certain=group.certain,
        recovered=group.recovered,
        kind=group.kind,
        told=failure_of(example, wording),
        signature=example.signature,
        text=None if example.text is None else clean_line(example.text, _LINE),
        first_seen=seen.first_seen,
        last_seen=seen.last_seen,
        is_new=seen.is_new,
        came_back=seen.came_back,
        began_late=began_on(fleet, group),
        days=group.days,
        users=dict(sorted(group.users.items(), key=lambda told: (-told[1], told[0]))[:_USERS]),
        names=group.names,
        nodes=group.nodes,
        retry=example.retry,
        gpu_seconds_lost=group.gpu_seconds_lost,
    )
