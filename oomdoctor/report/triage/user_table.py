"""A table by user: jobs, those that died of memory, in how many groups, and the GPU hours that they cost."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.report.document import Cell, Table
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import Fleet, UserSum
from oomdoctor.units import format_share

_HOUR = 3600
_LONGEST = 80


class UserLine(Struct, frozen=True, kw_only=True):
    """A user; null where nobody knows whose the jobs are."""

    user: str | None
    jobs: int
    failed: int
    """Jobs that died of memory."""
    groups: int
    gpu_hours_lost: float


def user_lines(fleet: Fleet) -> list[UserLine]:
    """Return the users of whom a job died of memory, the one with most first."""
    lines = [_line(name, told) for name, told in fleet.users.items() if told.failed]
    return sorted(lines, key=lambda line: (-line.failed, -line.gpu_hours_lost, line.user or ""))


def user_table(lines: list[UserLine], wording: Wording) -> Table:
    """Return the users as a table."""
    columns = (texts.USER, texts.FAILED, texts.ALL_JOBS, texts.SHARE, texts.USER_GROUPS, texts.GPU_HOURS)
    rows = tuple(tuple(map(Cell, _cells(line, wording))) for line in lines)
    return Table(wording.say(texts.BY_USER), tuple(Cell(wording.say(text)) for text in columns), rows)


def _line(name: str, told: UserSum) -> UserLine:
    hours = round(told.gpu_seconds_lost / _HOUR, 1)
    return UserLine(user=name or None, jobs=told.jobs, failed=told.failed, groups=len(told.groups), gpu_hours_lost=hours)


def _cells(line: UserLine, wording: Wording) -> tuple[str, ...]:
    user = wording.say(texts.UNKNOWN_USER) if line.user is None else clean_line(line.user, _LONGEST)
    share = format_share(line.failed / line.jobs)
    return user, f"{line.failed:,}", f"{line.jobs:,}", share, f"{line.groups:,}", f"{line.gpu_hours_lost:,.1f}"
