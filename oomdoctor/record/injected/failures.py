"""Requests that failed, and exceptions that nobody caught, as they are written down."""

from __future__ import annotations

import sys
import time
import traceback
from typing import Any, Dict

from .devices import Accelerator
from .guard import Figures, guarded, text_of
from .place import RankFiles
from .stacks import BACKWARD, holders_of, stack_of_request, stack_of_trace

_MOST_TEXT = 1 << 16
_MOST_CAUSES = 10
_REST = 50.0
"""Snapshots may take one part in so many of the time of a run that goes on after failures."""
_TEXTS = (
    "out of memory", "OutOfMemory", "RESOURCE_EXHAUSTED", "NVML_SUCCESS", "_STATUS_ALLOC_FAILED", "_STATUS_NOT_INITIALIZED",
    "DefaultCPUAllocator", "Cannot allocate memory", "MPS backend", "UR_RESULT_ERROR_OUT_OF", "unable to mmap", "bad_alloc",
)  # fmt: skip
"""What messages of memory failures hold (see rules/signatures); the diagnosis decides, this only chooses when to take a snapshot."""


class RefusedRequests:
    """The failed requests of a process: the first and the latest are kept, as programs may try again for hours."""

    def __init__(self, files: RankFiles) -> None:
        self._files = files
        self.count = 0
        self._next_snapshot = 0.0
        self._skipped: Figures | None = None

    def add(self, figures: Figures, accelerator: Accelerator) -> None:
        """Write down a request that failed just now, in this thread."""
        stack, thread = stack_of_request()
        self._keep({**figures, "stack": stack, "thread": thread, "gradients": _records_gradients(thread)}, accelerator)

    def add_from_exception(self, figures: Figures, accelerator: Accelerator | None, trace: Any) -> None:
        """Write down a failure that only its exception tells of; what its frames hold is still there."""
        self._keep({**figures, "stack": stack_of_trace(trace)}, accelerator)

    def _keep(self, figures: Figures, accelerator: Accelerator | None) -> None:
        self.count += 1
        kind = "oom-1" if self.count == 1 else "oom-2"
        record = {"time": time.time(), **figures, "count": self.count, "holders": []}
        self._files.write_json(kind + ".json", record)
        began = time.monotonic()
        self._skipped = record
        if accelerator is None or began < self._next_snapshot:
            return
        self._write_snapshot(kind, record, accelerator)
        now = time.monotonic()
        self._next_snapshot = now + _REST * (now - began)

    def write_what_was_skipped(self, accelerator: Accelerator) -> None:
        """Take the snapshot of the latest failure where it was left out to save time: it was the last, and its frames still hold all."""
        if self._skipped is not None:
            self._write_snapshot("oom-2", self._skipped, accelerator)

    @guarded("the memory snapshot")
    def _write_snapshot(self, kind: str, record: Figures, accelerator: Accelerator) -> None:
        self._skipped = None
        snapshot = accelerator.snapshot()
        if snapshot is None:
            return
        holders = holders_of(snapshot) if isinstance(snapshot, dict) else []
        if holders:
            self._files.write_json(kind + ".json", {**record, "holders": holders})
        self._files.write_pickle(kind + ".pickle", snapshot)


@guarded("whether gradients are recorded")
def _records_gradients(thread: str) -> bool | None:
    """Return whether this thread records gradients; None in the backward pass, whose thread has a mode of its own."""
    ask = getattr(sys.modules.get("torch"), "is_grad_enabled", None)
    return None if ask is None or thread == BACKWARD else bool(ask())


def describe(kind: Any, value: Any, trace: Any, thread: str | None) -> Figures:
    """Return an exception as it is written down."""
    lines = traceback.format_exception(kind, value, trace)
    module = getattr(kind, "__module__", "")
    name = kind.__name__ if module in ("builtins", "") else "%s.%s" % (module, kind.__name__)
    return {
        "time": time.time(),
        "type": name,
        "text": text_of(value)[:_MOST_TEXT],
        "traceback": "".join(lines)[-_MOST_TEXT:],
        "thread": thread,
    }


def is_memory_failure(value: BaseException | None) -> bool:
    """Return whether an exception, or one that it came from, may tell of memory that ran out."""
    seen = 0
    while value is not None and seen < _MOST_CAUSES:
        if isinstance(value, MemoryError) or any(text in type(value).__name__ or text in text_of(value) for text in _TEXTS):
            return True
        value, seen = value.__cause__ or value.__context__, seen + 1
    return False


@guarded("counters of mps")
def mps_stats() -> Dict[int, Figures]:
    """Return what Apple's device tells, where torch uses one (torch/mps/__init__.py)."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.backends.mps.is_available():
        return {}
    names = ("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory")
    functions = {name: getattr(torch.mps, name, None) for name in names}
    return {0: {name: function() for name, function in functions.items() if function is not None}}


@guarded("counters of jax")
def jax_stats() -> Dict[int, Figures]:
    """Return the counters of jax's devices, where it started any."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not getattr(bridge, "_backends", None):
        return {}
    devices = sys.modules["jax"].local_devices()
    return {device.id: dict(device.memory_stats() or {}) for device in devices}
