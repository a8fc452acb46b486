"""The largest size that fits, given that more never needs less."""

from __future__ import annotations

from collections.abc import Callable


def largest(holds: Callable[[int], bool], step: int, most: int) -> int | None:
    """Return the largest multiple of `step` up to `most` for which `holds` is true; None if it is false for the first."""
    low, high = 0, most // step + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle * step) else (low, middle)
    return low * step or None
