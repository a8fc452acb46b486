"""What the allocators of torch tell, by what the version that runs has: counters, history, snapshots, an observer of failures."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Iterator, List

from .guard import Figures, note

_HISTORY_ENTRIES = 100_000
_DEADLOCKS_BEFORE = (2, 1)
"""Below, the allocator's lock is held while a stack is freed and while observers run, and both wait for Python: another thread that asks
for counters would wait forever (torch/csrc/cuda/Module.cpp of 2.0, StackContext; c10/cuda/CUDACachingAllocator.cpp of 2.0)."""


def version_of(torch: Any) -> tuple[int, int]:
    """Return major and minor version."""
    parts = str(getattr(torch, "__version__", "0.0")).split(".")
    digits = ["".join(letter for letter in part if letter.isdigit()) for part in parts[:2]]
    return (int(digits[0] or 0), int(digits[1] or 0)) if len(digits) == 2 else (0, 0)


class Accelerator:
    """One kind of device of torch: cuda (which ROCm uses, too), xpu, npu, musa, mlu."""

    def __init__(self, name: str, torch: Any) -> None:
        self.name = name
        self._torch = torch
        self._module = getattr(torch, name)
        self._memory = getattr(self._module, "memory", self._module)
        self.backend = "hip" if name == "cuda" and getattr(torch.version, "hip", None) else name

    def when_used(self, function: Callable[[], None]) -> None:
        """Call a function when the device is first used, or now where it is."""
        self._module._lazy_call(function)

    def attach(self, observer: Callable[[int, int, int, int], None]) -> None:
        """Have a function called for each failed request."""
        if version_of(self._torch) < _DEADLOCKS_BEFORE:
            note("failed requests", "torch before 2.1 can deadlock when they are observed", "torch 2.1 or later")
            return
        attach = self._native("attach_out_of_memory_observer")
        if attach is None:
            note("failed requests", "this torch has no observer for %s" % self.name)
        else:
            attach(observer)

    def record_history(self, level: int) -> None:
        """Record stacks: of what lives at level 1, of every request at level 2. What the program switched on stays as it is."""
        record = getattr(self._memory, "_record_memory_history", None)
        if level == 0 or record is None:
            return
        if version_of(self._torch) < _DEADLOCKS_BEFORE:
            note("stacks of what lives", "torch before 2.1 can deadlock when stacks are recorded", "torch 2.1 or later")
            return
        is_recording = self._native("isHistoryEnabled")
        if is_recording is not None and is_recording():
            note("history", "the program records its own history")
            return
        settings: Figures = {"enabled": "state", "context": "state", "stacks": "python"}
        if level == 2:
            settings = {"enabled": "all", "context": "alloc", "stacks": "python", "max_entries": _HISTORY_ENTRIES}
        known = inspect.signature(record).parameters
        if "stacks" not in known:
            known = inspect.signature(getattr(self._memory, "_record_memory_history_impl", record)).parameters
        if "stacks" not in known:
            note("stacks of what lives", "this torch cannot record only Python stacks")
            return
        record(**{name: value for name, value in settings.items() if name in known})

    def snapshot(self) -> Any:
        """Return the memory snapshot of this moment; None where there is none."""
        take = getattr(self._memory, "_snapshot", None)
        return None if take is None or not self.is_used() else take()

    def is_used(self) -> bool:
        """Return whether the device was started."""
        return bool(self._module.is_initialized())

    def stats(self, device: int) -> Figures:
        """Return the raw counters of a device."""
        ask = getattr(self._memory, "memory_stats_as_nested_dict", None) or self._module.memory_stats_as_nested_dict
        return ask(device) or {}

    def used(self) -> Iterator[tuple[int, Figures]]:
        """Yield each device that this process holds memory of, with its counters."""
        for device in range(self._module.device_count()):
            stats = self.stats(device)
            if number(stats, "reserved_bytes", "peak") > 0 or number(stats, "num_ooms") > 0:
                yield device, stats

    def pinned(self) -> float:
        """Return the page-locked bytes of the host; NaN where that is unknown."""
        ask = getattr(self._memory, "host_memory_stats", None)
        return float((ask() if ask is not None else {}).get("allocated_bytes.current", "nan"))

    def _native(self, name: str) -> Any:
        """Return a function of the binding, which has the name of the device before its own.

        torch_npu calls its binding `_C`; torch_musa `_MUSAC` (torch_musa/csrc/core/Allocator.cpp), and torch_mlu `_MLUC`.
        """
        library = sys.modules.get("torch_" + self.name)
        bindings: List[Any] = [getattr(library, name, None) for name in ("_C", "_%sC" % self.name.upper())] + [self._torch._C]
        return next((function for part in bindings for function in [getattr(part, "_%s_%s" % (self.name, name), None)] if function), None)


def number(stats: Figures, name: str, of: str | None = None) -> float:
    """Return a counter of all pools; NaN where this version has none."""
    value = stats.get(name)
    if of is not None:
        value = value.get("all", {}).get(of) if isinstance(value, dict) else None
    return float(value) if isinstance(value, (int, float)) else float("nan")


def record_of(stats: Figures, device: int, now: float, pinned: float, step: int | None) -> List[float]:
    """Return a record of the ring."""
    return [
        now,
        float(device),
        number(stats, "allocated_bytes", "current"),
        number(stats, "allocated_bytes", "peak"),
        number(stats, "reserved_bytes", "current"),
        number(stats, "reserved_bytes", "peak"),
        number(stats, "active_bytes", "current"),
        number(stats, "active_bytes", "peak"),
        number(stats, "requested_bytes", "current"),
        number(stats, "inactive_split_bytes", "current"),
        number(stats, "num_alloc_retries"),
        number(stats, "num_ooms"),
        number(stats, "num_device_alloc"),
        number(stats, "num_device_free"),
        pinned,
        float("nan") if step is None else float(step),
    ]
