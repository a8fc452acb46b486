"""Times stated in log lines: when the last line was written, and in which time zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from msgspec import Struct

_REACH = 32 << 10
"""A log with no time in this many trailing bytes is dated by its file."""
_MOST_TRIED = 24
"""How many candidates for the beginning of a year are tried."""
_BEHIND_CLOCK = 16
"""A year comes before the time of day, or at most this many bytes after its last colon."""
_BEFORE_YEAR = 32
"""C's time format ends with the year and is no longer than this."""
_AHEAD = 86_400
"""A line is no newer than its file, except for the time zone, which is often missing."""
_ISO = re.compile(rb"(20\d\d)([-/])(\d\d)\2(\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,]\d{1,9})? ?(Z\b|UTC\b|[+-]\d\d:?\d\d\b)?")
_CTIME = re.compile(
    rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) "
    rb"(?:(UTC|GMT|[A-Z]{3,5}) )?(20\d\d)$"
)
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_BEHIND_YEAR = frozenset((b"-", b"/", b"\n", b"]", b" ", b"\r", b":", b""))
_UTC = (b"Z", b"UTC", b"GMT")
_UNITS = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3))
"""From each of these values, a number counts this fraction of a second since 1970."""


class LineTime(Struct, frozen=True, array_like=True, gc=False):
    """The time at which a line was written."""

    seconds: int
    """Seconds since 1970."""
    zone: str | None
    """The time zone it names, as `UTC` or `+08:00`; None if it names none and is read as UTC."""


def last_time(data: bytes, modified: int = 0) -> LineTime | None:
    """Return the last time stated at the end of a text; None if there is none.

    `modified` is when the file was written, in nanoseconds: what is later than that is no time of a line.
    """
    latest = modified // 10**9 + _AHEAD if modified else None
    start = max(0, len(data) - _REACH)
    at = min(len(data), data.rfind(b":", start) + _BEHIND_CLOCK)
    for _ in range(_MOST_TRIED):
        # Search backward, for the digits that all current years start with: matching one pattern over all of it takes ten times as long.
        at = data.rfind(b"20", start, max(at, 0))
        if at < 0:
            return None
        time = _time_at(data, at) if data[at + 4 : at + 5] in _BEHIND_YEAR else None
        if time is not None and (latest is None or time.seconds <= latest):
            return time
    return None


def _time_at(data: bytes, year: int) -> LineTime | None:
    """Return the time whose year is at an offset; None if there is none."""
    if data[year + 4 : year + 5] in (b"-", b"/"):
        match = _ISO.match(data, year)
        return None if match is None else _of_iso(match)
    match = _CTIME.search(data[max(0, year - _BEFORE_YEAR) : year + 4]) if data[year - 1 : year] == b" " else None
    return None if match is None else _of_ctime(match)


def stated_time(text: str) -> LineTime | None:
    """Return the time that a log store writes next to a line: ISO 8601, or a number of (fractions of) seconds since 1970."""
    if text.isdecimal() and len(text) <= len(str(_UNITS[0][0])) + 2:
        number = int(text)
        return LineTime(number // next((unit for least, unit in _UNITS if number >= least), 1), "UTC")
    match = _ISO.match(text.encode("utf-8", "replace"))
    return None if match is None else _of_iso(match)


def _of_iso(match: re.Match[bytes]) -> LineTime | None:
    year, _, month, day, hour, minute, second, zone = match.groups()
    return _time(year, int(month), day, (hour, minute, second), zone)


def _of_ctime(match: re.Match[bytes]) -> LineTime | None:
    month, day, hour, minute, second, zone, year = match.groups()
    return _time(year, _MONTHS.index(month) + 1, day, (hour, minute, second), zone if zone in _UTC else None)


def _time(year: bytes, month: int, day: bytes, clock: tuple[bytes, bytes, bytes], zone: bytes | None) -> LineTime | None:
    """Return a time; None if it is invalid, such as June 31."""
    hour, minute, second = map(int, clock)
    try:
        when = datetime(int(year), month, int(day), hour, minute, min(second, 59), tzinfo=_zone(zone))
    except ValueError:
        return None
    return LineTime(int(when.timestamp()), None if zone is None else _name(when))


def _name(when: datetime) -> str:
    """Return the zone of a time, as `UTC` or `+08:00`."""
    return "UTC" if not when.utcoffset() else when.isoformat()[-6:]


def _zone(zone: bytes | None) -> timezone:
    if zone is None or zone in _UTC:
        return timezone.utc
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return timezone(-offset if zone[:1] == b"-" else offset)
