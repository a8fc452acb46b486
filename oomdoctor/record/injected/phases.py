"""The phases that a program tells, and the most that it held in each, without a counter that is reset.

The peak of the allocator only rises, unless the program resets it. Where it rose during a phase, its new height is the peak of that phase;
where it did not, what was allocated at the moments that were looked at is the least that the phase held.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Tuple

from .guard import Figures, guarded
from .place import RankFiles

_MOST_PHASES = 50
_EVERY = 1.0
"""Seconds between two writes."""

Counts = Dict[str, Tuple[float, float]]
"""Of each device what is allocated, and the peak."""


class PhasePeaks:
    """What the phases of this process held."""

    def __init__(self, files: RankFiles, counts: Callable[[], Counts]) -> None:
        self._files, self._counts = files, counts
        self._lock = threading.RLock()  # a finaliser may run into a failed request here, which is written down
        self._phases: Dict[str, Figures] = {}
        self._peaks: Dict[str, float] = {}
        self._now: Figures | None = None
        self._since = self._written = 0.0

    @guarded("phases")
    def enter(self, name: str | None, step: int | None) -> None:
        """Begin a phase, which ends the one before; None begins none."""
        with self._lock:
            self._look(step)
            moment = time.time()
            if self._now is not None:
                self._now["seconds"] += moment - self._since
            self._since, self._now = moment, None
            if name is not None and (name in self._phases or len(self._phases) < _MOST_PHASES):
                new = {"name": name[:80], "times": 0, "seconds": 0.0, "first_step": step, "last_step": step, "peak": None, "least": None}
                self._now = self._phases.setdefault(name, new)
                self._now["times"] += 1
        if time.time() - self._written >= _EVERY:
            self.write()

    @guarded("phases")
    def look(self, step: int | None) -> None:
        """Count what the phase holds now."""
        if self._phases:
            with self._lock:
                self._look(step)

    def _look(self, step: int | None) -> None:
        phase = self._now
        if phase is not None and step is not None:
            phase["last_step"] = step
        for device, (allocated, peak) in self._counts().items():
            if phase is not None and allocated == allocated and peak == peak:  # NaN where this version does not count
                phase["least"] = max(phase["least"] or 0, int(allocated))
                if peak > self._peaks.get(device, 0):
                    phase["peak"] = max(phase["peak"] or 0, int(peak))
            self._peaks[device] = peak

    @guarded("phases")
    def write(self) -> None:
        """Write what is known by now."""
        if self._phases:
            self._written = time.time()
            out: List[Any] = list(self._phases.values())
            self._files.write_json("phases.json", {"phases": out})
