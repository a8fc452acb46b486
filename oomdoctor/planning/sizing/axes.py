"""Which sizes a sweep considers: `batch,length`, `length=2048..32768`, `batch=1,2,6,length=4k..64k`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from oomdoctor.errors import UsageError

MOST_VALUES = 16
"""Per axis: what a person reads in a table."""
LARGEST = {"batch": 65_536, "length": 4 << 20}
"""Samples, and tokens: nothing that runs is larger."""
_NAMES = {"batch": "batch", "requests": "batch", "length": "length", "context": "length"}
"""Servers call them requests and context."""
_TRAINED = {"batch": (1, 2, 4, 8, 16, 32), "length": (1024, 2048, 4096, 8192, 16384, 32768)}
_SERVED = {"batch": (1, 4, 16, 64, 256), "length": (4096, 8192, 16384, 32768, 65536, 131072)}
_VALUE = re.compile(r"\s*(\d{1,8})\s*([kK]?)\s*\Z")


def parse_axes(text: str, *, is_served: bool) -> dict[str, tuple[int, ...]]:
    """Return the values for each axis named in the text. Raise UsageError if it names none or gives invalid values."""
    axes: dict[str, list[str]] = {}
    values: list[str] = []
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if equals or _NAMES.get(name.strip().lower()):
            values = axes.setdefault(_axis(name), [])
            values += [value] if equals else []
        elif axes:
            values.append(part)
        else:
            _axis(name)
    return checked_axes({name: _listed(name, parts) or (_SERVED if is_served else _TRAINED)[name] for name, parts in axes.items()})


def checked_axes(axes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Return the axes with each value once, in order. Raise UsageError if a name or a value is invalid, or there are too many."""
    checked = {_axis(name): tuple(sorted(set(values))) for name, values in axes.items()}
    for name, values in checked.items():
        if not values or values[0] < 1 or values[-1] > LARGEST[name]:
            raise UsageError(f"--sweep {name}: from 1 to {LARGEST[name]:,}")
        if len(values) > MOST_VALUES:
            raise UsageError(f"--sweep {name}: {len(values)} values; at most {MOST_VALUES}")
    return checked


def _axis(name: str) -> str:
    axis = _NAMES.get(name.strip().lower())
    if axis is None:
        raise UsageError(f"--sweep {name.strip() or 'nothing'}: batch, length, or both (batch,length=2048..32768)")
    return axis


def _listed(name: str, parts: Sequence[str]) -> tuple[int, ...]:
    return tuple(value for part in parts for value in _span(name, part))


def _span(name: str, part: str) -> tuple[int, ...]:
    """Return one value, or those from the first to the last, doubled each time."""
    first, dots, last = part.partition("..")
    low = _number(name, first)
    high = _number(name, last) if dots else low
    if low > high:
        raise UsageError(f"--sweep {name}={part}: the first is larger than the last")
    values = [low]
    while low and values[-1] * 2 < high:
        values.append(values[-1] * 2)
    return (*values, high)


def _number(name: str, text: str) -> int:
    number = read_number(text)
    if number is None:
        raise UsageError(f"--sweep {name}={text}: use numbers like 4096 or 4k, or a range like 2048..32768")
    return number


def read_number(text: str) -> int | None:
    """Return a number as people write it, 4096 or 4k; None if it is not a number."""
    match = _VALUE.match(text)
    return None if match is None else int(match[1]) * (1024 if match[2] else 1)
