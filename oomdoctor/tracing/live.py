"""How many bytes of tensors live at once, operation by operation."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from oomdoctor.tracing.operations import WatchedOperations

_BLOCK = 512
"""Bytes to which the CUDA allocator rounds a request: kMinBlockSize of c10/cuda/CUDACachingAllocator."""


class LiveTensors(WatchedOperations):
    """Counts the storages that operations give, and takes them off when nothing refers to them any more."""

    def __init__(self, seconds: float = float("inf")) -> None:
        super().__init__(seconds)
        self.now = 0
        self.peak = 0
        self._sizes: dict[int, int] = {}

    def mark(self) -> None:
        """Begin a new peak."""
        self.peak = self.now

    def leave_out(self, tensor: torch.Tensor) -> None:
        """Stop counting a tensor that is counted elsewhere."""
        self._free(tensor.untyped_storage()._cdata)

    def seen(self, tensor: torch.Tensor, func: Callable[..., Any]) -> None:
        """Count a tensor."""
        del func
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._sizes:
            return
        self._sizes[key] = size = -(-storage.nbytes() // _BLOCK) * _BLOCK
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._free, key)

    def _free(self, key: int) -> None:
        self.now -= self._sizes.pop(key, 0)
