"""A time window; only jobs that ended in it count: the last day, a specific day, since a repair."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta, timezone

from msgspec import Struct

from oomdoctor.errors import UsageError

_SPAN = re.compile(r"(\d{1,6})\s*(m|min|h|d|w)")
_SECONDS = {"m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


class TimeWindow(Struct, frozen=True):
    """The start (inclusive) and end (exclusive), in seconds since 1970; None if open on that side."""

    since: int | None = None
    until: int | None = None

    @property
    def is_all(self) -> bool:
        """Return whether every job counts, even one with an unknown end time."""
        return self.since is None and self.until is None

    def holds(self, ended: int | None) -> bool:
        """Return whether a job that ended at this time counts."""
        if self.is_all:
            return True
        return ended is not None and (self.since is None or ended >= self.since) and (self.until is None or ended < self.until)


ALL = TimeWindow()


def window_of(since: str | None, until: str | None, day: str | None, now: float) -> TimeWindow:
    """Return the requested window: times or spans before now (`24h`), or one day. Raise UsageError if it is invalid."""
    if day is not None:
        if since is not None or until is not None:
            raise UsageError("--day is a single day; --since and --until give a range")
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
            raise UsageError(f"--day {day}: write the day as 2026-11-22")
        start = _time(day, "--day")
        return TimeWindow(start, start + _SECONDS["d"])
    window = TimeWindow(
        None if since is None else _before(since, "--since", now),
        None if until is None else _before(until, "--until", now),
    )
    if window.since is not None and window.until is not None and window.since >= window.until:
        raise UsageError(f"--since {since} is not before --until {until}")
    return window


def span_of(text: str, option: str) -> int:
    """Return a span in seconds: 24h, 7d, 90m, 2w. Raise UsageError if it is invalid."""
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise UsageError(f"{option} {text}: write a duration as 24h, 7d, 90m or 2w")
    return int(match[1]) * _SECONDS[match[2]]


def time_text(seconds: int) -> str:
    """Return a time as a day, with the time of day unless that is midnight; in UTC, like all days in rows."""
    return time.strftime("%Y-%m-%d" if seconds % _SECONDS["d"] == 0 else "%Y-%m-%d %H:%M", time.gmtime(seconds))


def _before(text: str, option: str, now: float) -> int:
    if _SPAN.fullmatch(text.strip().lower()):
        return int(now) - span_of(text, option)
    return _time(text, option)


def _time(text: str, option: str) -> int:
    try:
        when = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        utc = when if when.tzinfo is not None else when.replace(tzinfo=timezone.utc)
        return (utc - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(seconds=1)
    except ValueError as why:
        raise UsageError(f"{option} {text}: write a duration before now as 24h, a time as 2026-11-22 or 2026-11-22T10:00 (UTC)") from why
