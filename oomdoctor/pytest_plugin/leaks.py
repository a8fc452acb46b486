"""Leaks: what a test leaves on a device each time that it runs."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from oomdoctor.pytest_plugin.devices import allocated_now
from oomdoctor.pytest_plugin.marks import LeakMark
from oomdoctor.pytest_plugin.tensors import device_tensors, tensor_title

_AGAIN = 2
"""How many times as often what looks like a leak is run again before the test fails of it."""
_SHOWN = 3


class Leak(NamedTuple):
    """Memory that grows with each run. Sizes are bytes."""

    device: str
    each: float
    """What a run leaves behind, on the average."""
    runs: int
    before: int
    after: int
    left: tuple[str, ...]
    """What is there that was not, by kind, the most first."""


def find_leak(run: Callable[[], object], mark: LeakMark) -> Leak | None:
    """Run a test again and return what it leaks; None where it leaks nothing, or no device is used.

    It ran once before, which warmed it up. What grows is run again more often, as a cache is full one day and a leak never is.
    """
    if not (readings := _readings(run, mark.repeats)) or not _growing(readings, mark.allowed, rises=1):
        return None
    kinds = Counter(map(tensor_title, device_tensors()))
    readings = _readings(run, mark.repeats * _AGAIN)
    growing = _growing(readings, mark.allowed, rises=2)
    if not growing:
        return None
    kinds = Counter(map(tensor_title, device_tensors())) - kinds
    device = max(growing, key=lambda name: growing[name])
    left = tuple(f"{count} x {title}" for title, count in kinds.most_common(_SHOWN))
    return Leak(device, growing[device], len(readings) - 1, readings[0].get(device, 0), readings[-1][device], left)


def _readings(run: Callable[[], object], repeats: int) -> list[dict[str, int]]:
    """Return what each device holds before, and after each of so many runs; nothing where no device is used."""
    readings = [_held()]
    if not readings[0]:
        return []
    for _ in range(repeats):
        run()
        readings.append(_held())
    return readings


def _held() -> dict[str, int]:
    """Return what each device holds that is no garbage."""
    held = allocated_now()
    if held:
        gc.collect()
    return allocated_now() if held else held


def _growing(readings: Sequence[dict[str, int]], allowed: int, *, rises: int) -> dict[str, float]:
    """Return by how much a run adds to each device on which memory grows."""
    growths = {name: growth([reading.get(name, 0) for reading in readings], allowed, rises=rises) for name in readings[-1]}
    return {name: each for name, each in growths.items() if each is not None}


def growth(sizes: Sequence[int], allowed: int, *, rises: int) -> float | None:
    """Return the bytes that a run adds, over the later half of the runs; None where they are steady.

    Memory that ever falls is held for a while and no leak. In the first half caches may fill; in the later half it must rise `rises` times.
    """
    later = sizes[(len(sizes) - 1) // 2 :]
    steps = [after - before for before, after in pairwise(later)]
    each = sum(steps) / len(steps) if steps else 0.0
    is_leak = each > allowed and sum(step > 0 for step in steps) >= rises and all(before <= after for before, after in pairwise(sizes))
    return each if is_leak else None
