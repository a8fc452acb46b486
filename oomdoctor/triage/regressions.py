"""Groups that began late in the time that a fleet's logs cover and are large at once: what a new image or a new default brings."""

from __future__ import annotations

from oomdoctor.triage.groups import Fleet, Group

_LATE = 0.75
"""Before this part of the days there is no failure of the group."""
_LEAST_DAYS = 8
"""Fewer days have no last quarter worth the name."""
_LEAST_JOBS = 5
_LEAST_SHARE = 0.05
"""Of all failures of memory."""


def began_on(fleet: Fleet, group: Group) -> str | None:
    """Return the day on which a large group began in the last quarter of the fleet's days; None for all others."""
    days = sorted(fleet.jobs_by_day)
    if len(days) < _LEAST_DAYS or not group.days or group.jobs < max(_LEAST_JOBS, _LEAST_SHARE * fleet.failed):
        return None
    first = min(group.days)
    return first if first >= days[int(len(days) * _LATE)] else None
