"""What the marks of a test ask for, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import pytest

from oomdoctor.units import parse_size

T = TypeVar("T")
Size = int
"""Bytes."""


class PeakMark(NamedTuple):
    """`gpu_memory`: what a test may take, and what it needs."""

    limit: Size | None = None
    needs: Size | None = None
    estimate: Mapping[str, object] | None = None
    """What `oomdoctor.estimate` is asked for what it needs."""
    of: str = "test"
    """`test`: what it adds to what was there; `process`: everything that the process holds."""
    tolerance: str | float | None = None


class LeakMark(NamedTuple):
    """`gpu_memory_leak`: how often the test is repeated, and what it may leave behind each time."""

    repeats: int = 5
    allowed: Size = 0


class Tolerance(NamedTuple):
    """How far a peak may lie above the kept one: a share of it, and bytes; the larger counts."""

    share: float = 0.05
    size: Size = 32 << 20
    """The workspace of cuBLAS is counted for the first test that multiplies: 8 MiB, and 32 MiB on Hopper
    (aten/src/ATen/cuda/CublasHandlePool.cpp of PyTorch)."""

    def most(self, kept: Size) -> Size:
        """Return the largest peak that is still no regression."""
        return kept + max(round(kept * self.share), self.size)


class MarkError(ValueError):
    """Something that a mark or an option cannot say."""


def read_size(value: object, name: str) -> Size:
    """Return the bytes of a size: a number of bytes, or a text such as `8 GiB`."""
    size = parse_size(value) if isinstance(value, str) else value
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise MarkError(f"{name}: {value!r} is not a size (8 GiB, or a number of bytes)")
    return size


def read_tolerance(value: object, name: str) -> Tolerance:
    """Return the tolerance that `10%`, `64MiB` or the share 0.1 says."""
    if isinstance(value, float) and 0 <= value < 100:
        return Tolerance(share=value, size=0)
    if isinstance(value, str) and value.endswith("%") and value[:-1].strip().replace(".", "", 1).isdecimal():
        return Tolerance(share=float(value[:-1]) / 100, size=0)
    try:
        return Tolerance(share=0.0, size=read_size(value, name))
    except MarkError:
        raise MarkError(f"{name}: {value!r} is neither a percentage (10%) nor a size (64MiB)") from None


def peak_mark(item: pytest.Item) -> PeakMark | None:
    """Return what `gpu_memory` says of a test; None where it has no such mark. Raise UsageError where the mark is wrong."""
    mark = item.get_closest_marker("gpu_memory")
    return None if mark is None else _read(item, mark, _peak)


def leak_mark(item: pytest.Item) -> LeakMark | None:
    """Return what `gpu_memory_leak` says of a test; None where it has no such mark. Raise UsageError where the mark is wrong."""
    mark = item.get_closest_marker("gpu_memory_leak")
    return None if mark is None else _read(item, mark, _leak)


def _read(item: pytest.Item, mark: pytest.Mark, read: Callable[[pytest.Mark], T]) -> T:
    try:
        return read(mark)
    except (MarkError, TypeError) as why:
        text = str(why).replace("PeakMark.__new__()", mark.name).replace("LeakMark.__new__()", mark.name)
        raise pytest.UsageError(f"{item.nodeid}: {text}") from None


def _peak(mark: pytest.Mark) -> PeakMark:
    if len(mark.args) > 1:
        raise MarkError("gpu_memory accepts one positional argument, the limit")
    given = PeakMark(*mark.args, **mark.kwargs)
    if given.of not in ("test", "process"):
        raise MarkError(f"of: {given.of!r} is neither 'test' nor 'process'")
    if given.estimate is not None and not isinstance(given.estimate, Mapping):
        raise MarkError("estimate: pass the arguments of oomdoctor.estimate as a dict")
    if given.tolerance is not None:
        read_tolerance(given.tolerance, "tolerance")
    return given._replace(
        limit=None if given.limit is None else read_size(given.limit, "limit"),
        needs=None if given.needs is None else read_size(given.needs, "needs"),
    )


def _leak(mark: pytest.Mark) -> LeakMark:
    given = LeakMark(*mark.args, **mark.kwargs)
    if not isinstance(given.repeats, int) or given.repeats < 3:
        raise MarkError(f"repeats: {given.repeats!r} is less than 3, too few to draw a conclusion")
    return given._replace(allowed=read_size(given.allowed, "allowed"))
