"""Where bytes and places stand in a drawing: the scales of both axes, and the lines that name them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from msgspec import Struct

from oomdoctor.units import GIB, KIB, MIB, TIB

WIDTH = 800
LEFT, RIGHT, TOP = 84, 14, 28
HEIGHT = 220
BELOW = 22
"""Under the axis, for the names of its places."""
_LINES = 4
_TEXT = 4
"""From the middle of a line of text down to its foot."""
_CHARACTER, _APART = 7, 30
"""The width of a character under the axis, and half the name of a place with the gap behind it."""
_LEAST = 1e-300
"""Places that are nearer to each other are one: floats that are smaller lose their digits."""
_UNITS = ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B"))


class Plot(Struct, frozen=True):
    """A drawing with places from left to right and bytes from below to the top."""

    start: float
    end: float
    top: int
    """The most bytes that it has room for; at least 1."""
    low: int = 0
    """The fewest; at least 1 where the axes are logarithmic."""
    is_log: bool = False
    """Whether on both axes each doubling is as wide as the others."""

    def x(self, at: float) -> float:
        """Return the distance of a place from the left; the middle where all places are one."""
        start, end, at = (self._scaled(place) / 2 for place in (self.start, self.end, at))
        share = (at - start) / (end - start) if end > start else 0.5
        return LEFT + (WIDTH - RIGHT - LEFT) * min(1.0, max(0.0, share))

    def y(self, size: int) -> float:
        """Return the distance of a size from the top."""
        low, top = self._scaled(self.low), self._scaled(self.top)
        return TOP + HEIGHT * (1 - (self._scaled(max(size, self.low)) - low) / ((top - low) or 1))

    def _scaled(self, value: float) -> float:
        return math.log2(value) if self.is_log else value

    def lines(self) -> Iterator[str]:
        """Yield a line across for each of a few round sizes, with its name."""
        for size, name in _doublings(self.low, self.top) if self.is_log else _sizes(self.top):
            y = self.y(size)
            yield f'<path class="grid-line" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + _TEXT:.1f}" text-anchor="end">{name}</text>'

    def places(self, axis: str, known: Sequence[float]) -> Iterator[str]:
        """Yield the name of the axis and those of a few places under it: round ones, or those that are `known` where each stands apart."""
        y = TOP + HEIGHT + BELOW - 6
        last = WIDTH - RIGHT - _CHARACTER * (len(axis) + sum(char > "\u2e80" for char in axis)) - _APART
        for at in known if self.is_log else _round_places(self.start, self.end):
            if self.x(at) <= last or not axis:
                yield f'<text x="{self.x(at):.1f}" y="{y}" text-anchor="middle">{place_name(at)}</text>'
        yield f'<text x="{WIDTH - RIGHT}" y="{y}" text-anchor="end">{escape(axis)}</text>' if axis else ""


def place_name(at: float) -> str:
    """Return a place as a person writes it."""
    if abs(at) >= 1e15:
        return f"{at:.3g}"
    return f"{at:,.0f}" if at == int(at) or abs(at) >= 100 else f"{at:,.2f}".rstrip("0").rstrip(".")


def _sizes(top: int) -> Iterator[tuple[int, str]]:
    scale, unit = next((entry for entry in _UNITS if top >= entry[0]), _UNITS[-1])
    step = _round_step(top / scale / _LINES)
    count = int(top / scale / step)
    for number in range(count + 1):
        yield int(number * step * scale), f"{number * step:.10g} {unit}"


def _doublings(low: int, top: int) -> Iterator[tuple[int, str]]:
    """Yield a few powers of two between two sizes."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(top))
    each = max(1, -(-(last - first + 1) // (_LINES + 2)))
    for power in range(first, last + 1, each):
        scale, unit = next(entry for entry in _UNITS if 1 << power >= entry[0])
        yield 1 << power, f"{(1 << power) / scale:.10g} {unit}"


def _round_places(start: float, end: float) -> Iterator[float]:
    width = end / 2 - start / 2
    if width < _LEAST:
        yield start
        return
    step = 2 * _round_step(width / _LINES)
    first = math.ceil(start / step)
    for number in range(2 * _LINES + 2):
        if (at := (first + number) * step) <= end:
            yield at


def _round_step(least: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 ... that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= least * 0.999), 10 * power)
