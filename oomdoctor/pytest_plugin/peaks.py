"""The peak of a test: how much of a device it took beyond what was there when it began."""

from __future__ import annotations

import gc
from typing import NamedTuple

from oomdoctor.pytest_plugin.devices import allocated_now, used_devices


class MeasuredPeak(NamedTuple):
    """The most that a test took. Sizes are bytes."""

    device: str
    title: str
    of_test: int
    """Beyond what was there when it began."""
    of_process: int
    """Everything in tensors of the process."""


def begin_peaks() -> dict[str, int]:
    """Start the counters of the used devices anew; return what is there.

    What earlier tests left to the garbage collector is taken first: freed later, it would hide what this test takes.
    """
    if next(used_devices(), None) is None:
        return {}
    gc.collect()
    for device in used_devices():
        device.reset_peak()
    return allocated_now()


def largest_peak(before: dict[str, int]) -> MeasuredPeak | None:
    """Return the peak of the device on which the test took most; None where no device is used."""
    peaks = [
        MeasuredPeak(device.name, device.title(), max(0, (most := device.peak()) - before.get(device.name, 0)), most)
        for device in used_devices()
    ]
    return max(peaks, key=lambda peak: (peak.of_test, peak.of_process), default=None)
