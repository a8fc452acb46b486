"""Values and times as monitors write them; what they cannot tell is None."""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from functools import lru_cache

from oomdoctor.case.recorded.series import Clock
from oomdoctor.units import MIB, parse_size

_BLANK = 9_000_000_000_000_000_000
"""DCGM writes 9223372036854775792 to ...795 where it has no value (dcgm_structs.h: DCGM_INT64_BLANK and above)."""
_MOST_BYTES = 1 << 50
_STAMP = re.compile(
    r"(?P<year>\d{4})[/-]?(?P<month>\d\d)[/-]?(?P<day>\d\d)[ T](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?P<part>[.,]\d{1,9})?"
    r"\s?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?\s*$"
)
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_OF_DAY = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)\s*$")
_EPOCH = (1_000_000_000, 4_000_000_000)
"""Between 2001 and 2096 a number counts the seconds since 1970."""


def read_bytes(text: str, unit: int = MIB) -> int | None:
    """Return the bytes of a cell; a bare number is counted in `unit`."""
    text = text.strip()
    if not text[:1].isdigit():
        return None
    if text.endswith(" MiB") and text[:-4].isdecimal() and len(text) < 20:
        return min(int(text[:-4]) * MIB, _MOST_BYTES)
    size = parse_size(text) if text[-1:].isalpha() else _scaled(text, unit)
    return size if size is not None and 0 <= size <= _MOST_BYTES else None


def read_number(text: str) -> float | None:
    """Return a number; None for one that stands for no value."""
    try:
        number = float(text.strip()[:40])
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < _BLANK else None


@lru_cache(maxsize=64)
def read_time(text: str) -> tuple[float, Clock] | None:
    """Return the seconds that a cell says, and on which clock."""
    text = text.strip().strip("[]")[:48]
    if stamp := _STAMP.match(text):
        zone = stamp["zone"]
        year, month, day, hour, minute, second = (int(stamp[name]) for name in _PARTS)
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
        except ValueError:
            return None
        part = float("0." + stamp["part"][1:]) if stamp["part"] else 0.0
        seconds = moment.timestamp() + part - _offset(zone)
        return seconds, "utc" if zone else "local"
    if hours := _OF_DAY.match(text):
        return float(int(hours["hour"]) * 3600 + int(hours["minute"]) * 60 + int(hours["second"])), "none"
    number = read_number(text)
    return None if number is None else counted_time(number)


def counted_time(number: float) -> tuple[float, Clock]:
    """Return a number of seconds, milli- or microseconds, or nanoseconds since 1970; a small one counts from any moment on."""
    for scale in (1, 1_000, 1_000_000, 1_000_000_000):
        if _EPOCH[0] <= number / scale <= _EPOCH[1]:
            return number / scale, "utc"
    return number, "none"


def _scaled(text: str, unit: int) -> int | None:
    number = read_number(text)
    return None if number is None else round(number * unit)


def _offset(zone: str | None) -> float:
    if zone is None or zone in ("Z", "UTC"):
        return 0.0
    digits = zone[1:].replace(":", "")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
