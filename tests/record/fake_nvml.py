"""What pynvml tells of the card of fake_card.py. Becomes `pynvml.py` beside a fake torch."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

_TOTAL = int(os.environ["FAKE_CARD_BYTES"])


class NVMLError(Exception):
    """A call that failed."""


def nvmlInit() -> None:
    """Start."""


def nvmlDeviceGetCount() -> int:
    """Return the number of cards."""
    return 1


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    """Return what stands for a card."""
    return index


def nvmlDeviceGetMemoryInfo(_handle: int) -> Any:
    """Return what is held of the card."""
    used = sum(_held().values())
    return SimpleNamespace(total=_TOTAL, used=used, free=_TOTAL - used)


def nvmlDeviceGetComputeRunningProcesses(_handle: int) -> list[Any]:
    """Return who holds what."""
    return [SimpleNamespace(pid=pid, usedGpuMemory=held) for pid, held in _held().items()]


def _held() -> dict[int, int]:
    from torch import _C

    return dict(_C.holders())
