"""Large groups that began in the last days of a fleet's logs: the effect of a new image or a new default."""

from __future__ import annotations

from oomdoctor.triage.groups import Fleet, Group

_LATE = 0.7
"""Before this fraction of the days, the group has no failures."""
_LEAST_DAYS = 8
"""With fewer days than this, none count as the last ones."""
_LEAST_JOBS = 5
_LEAST_SHARE = 0.05
"""The minimum share of all memory failures."""


def began_on(fleet: Fleet, group: Group) -> str | None:
    """Return the day on which a large group began, if in the last days of the fleet; None for all others."""
    days = sorted(fleet.jobs_by_day)
    if len(days) < _LEAST_DAYS or not group.days or group.jobs < max(_LEAST_JOBS, _LEAST_SHARE * fleet.failed):
        return None
    first = min(group.days)
    return first if first >= days[int(len(days) * _LATE)] else None
