"""What a test needs of a device before it runs, for `--max-vram`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest
from msgspec.json import encode

from oomdoctor.api.estimate import estimate
from oomdoctor.api.results import RunEstimate
from oomdoctor.errors import OomdoctorError
from oomdoctor.pytest_plugin.marks import PeakMark

_ESTIMATE: Callable[..., RunEstimate] = estimate
"""Which arguments a mark gives is seen when it is called."""


class Need(NamedTuple):
    """Bytes, and where they are from: `marked`, `estimated`, `kept` or `limit`."""

    bytes: int
    source: str


class MemoryNeeds:
    """Tells what tests need; each question to the memory model is asked once."""

    def __init__(self, kept: Mapping[str, int]) -> None:
        self._kept = kept
        self._estimates: dict[bytes, int | None] = {}

    def of(self, key: str, mark: PeakMark | None) -> Need | None:
        """Return what a test needs: as it is marked, else estimated, else as it was measured, else its limit; None where nobody knows."""
        estimated = self._estimated(key, mark.estimate) if mark is not None and mark.estimate is not None else None
        known = (
            (mark.needs if mark is not None else None, "marked"),
            (estimated, "estimated"),
            (self._kept.get(key), "kept"),
            (mark.limit if mark is not None else None, "limit"),
        )
        return next((Need(size, source) for size, source in known if size is not None), None)

    def _estimated(self, key: str, asked_for: Mapping[str, object]) -> int | None:
        question = encode(asked_for, order="sorted", enc_hook=str)
        if question not in self._estimates:
            try:
                needed = _ESTIMATE(**asked_for).needed
            except (OomdoctorError, TypeError) as why:
                raise pytest.UsageError(f"{key}: the estimate could not be made: {why}") from None
            self._estimates[question] = None if needed is None else round(needed.expected)
        return self._estimates[question]
