"""What the allocators of torch count on the devices that this process uses. Nothing is imported, and no device is started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

_KINDS = ("cuda", "xpu", "npu", "musa", "mlu")
"""Modules of torch with the same counters (torch/cuda/memory.py): CUDA and ROCm, and the others that follow it."""


class UsedDevice(NamedTuple):
    """A device that was started in this process."""

    name: str
    number: int
    module: Any
    """The module of torch, or of its extension, that counts."""

    def allocated(self) -> int:
        """Return the bytes in tensors now."""
        return self._requested("current", self.module.memory_allocated)

    def peak(self) -> int:
        """Return the most bytes in tensors since the peak was reset."""
        return self._requested("peak", self.module.max_memory_allocated)

    def reset_peak(self) -> None:
        """Let the peak begin at what is allocated now."""
        self.module.reset_peak_memory_stats(self.number)

    def _requested(self, when: str, counted: Callable[[int], int]) -> int:
        """Return the bytes that were asked for, else those of the blocks.

        A block that lies free serves a request whole where less than 1 MiB would be left of it (`should_split` in
        c10/cuda/CUDACachingAllocator.cpp): what blocks come to depends on the tests before.
        """
        stats = getattr(self.module, "memory_stats", None)
        requested = None if stats is None else stats(self.number).get(f"requested_bytes.all.{when}")
        return int(counted(self.number) if requested is None else requested)

    def title(self) -> str:
        """Return what the device is called by its maker."""
        return str(self.module.get_device_name(self.number))


def used_devices() -> Iterator[UsedDevice]:
    """Yield the devices of every kind that was started."""
    torch = sys.modules.get("torch")
    for kind in _KINDS if torch is not None else ():
        module: Any = getattr(torch, kind, None)
        is_started = getattr(module, "is_initialized", None)
        if is_started is not None and is_started():
            for number in range(module.device_count()):
                yield UsedDevice(f"{kind}:{number}", number, module)


def allocated_now() -> dict[str, int]:
    """Return the bytes in tensors of each used device."""
    return {device.name: device.allocated() for device in used_devices()}


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return by how much each device holds more; one that was not used before held nothing."""
    return {name: size - before.get(name, 0) for name, size in after.items()}
