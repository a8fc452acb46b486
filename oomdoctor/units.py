"""Sizes: the only module that reads and prints them. Everywhere else a size is an int of bytes.

The programs that we read print binary sizes under every label (`GiB`, `GB`, `G`, `Gi`), so all of them are base 1024.
"""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

NOT_AVAILABLE = 1 << 64
"""What torch prints as `17179869184.00 GiB`: an unsigned -1, so "no limit" or "the driver cannot tell"."""

_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DIGITS = 30
_SIZE = re.compile(r"\s*(-?\d[\d,_]*(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)\s*(?:([kKmMgGtTpP])(?:i?[bB]?|o)|[bB]|[bB]ytes?)?\s*\Z")

_DECIMAL_COMMA = re.compile(r"-?\d+,(?:\d{1,2}|\d{4,})\Z")
"""A comma not followed by three digits is not a thousands separator: some locales use it as the decimal point."""


def parse_size(text: str, unit: str = "") -> int | None:
    """Return the bytes of a printed size (`1.25 GiB`, `81kB`, `6.48G`, `1,234 bytes`, `0B`); None if it is not one.

    `unit` is used if the text is a bare number (`GiB` and so on; "" means bytes).
    """
    size = _SIZE.match(text)
    if size is None:
        return None
    number = size[1].replace("_", "")
    number = number.replace(",", "." if _DECIMAL_COMMA.match(number) else "")
    bare = size.end(1) == len(text.rstrip())
    letter = (unit[:1] if bare and unit[:1] not in "bB" else size[2]) or ""
    scale = 1 << (10 * _POWER[letter.lower()])
    if number.lstrip("-").isdigit():
        return int(number) * scale if len(number) <= _DIGITS else None
    value = float(number) * scale
    return round(value) if abs(value) < 1e30 else None


def format_size(size: int) -> str:
    """Format a size for a person: two decimals, the unit that keeps the number below 1024."""
    sign, magnitude = ("-", -size) if size < 0 else ("", size)
    if magnitude < KIB:
        return f"{sign}{magnitude} B"
    for scale, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        # One step below the boundary already rounds up to it: 1023.999 MiB is more readable as 1.00 GiB.
        if magnitude >= scale - scale // 2048:
            return f"{sign}{magnitude / scale:.2f} {name}"
    return f"{sign}{magnitude} B"


def format_figure(name: str, value: object) -> str:
    """Format a figure according to its name: `*_bytes` with a unit, `*_share` as percent, anything else as it is."""
    if name.endswith("_bytes") and isinstance(value, int):
        return format_size(value)
    return format_share(float(value)) if name.endswith("_share") and isinstance(value, (int, float)) else str(value)


def format_share(share: float) -> str:
    """Format a fraction of one as percent: `0.4 %`, `37 %`."""
    percent = share * 100
    return f"{percent:.1f} %" if abs(percent) < 10 else f"{percent:.0f} %"
