"""What a test needs of a device before it runs, for `--max-vram`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from msgspec.json import encode

from oomdoctor.api.estimate import estimate
from oomdoctor.errors import OomdoctorError
from oomdoctor.pytest_plugin.marks import PeakMark


class Need(NamedTuple):
    """Bytes, and where they are from: `marked`, `estimated`, `kept` or `limit`."""

    bytes: int
    source: str


class Needs:
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

    def _estimated(self, key: str, asked_for: Mapping[str, Any]) -> int | None:
        question = encode(asked_for, order="sorted", enc_hook=str)
        if question not in self._estimates:
            try:
                needed = estimate(**asked_for).needed
            except (OomdoctorError, TypeError) as why:
                raise pytest.UsageError(f"{key}: the estimate cannot be made: {why}") from None
            self._estimates[question] = None if needed is None else round(needed.expected)
        return self._estimates[question]
