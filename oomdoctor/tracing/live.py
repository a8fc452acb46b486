"""How many bytes of tensors live at once, operation by operation."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

_BLOCK = 512
"""Bytes to which the CUDA allocator rounds a request: kMinBlockSize of c10/cuda/CUDACachingAllocator."""


class TakesTooLong(Exception):
    """The code that is counted runs on for longer than it may."""


class LiveTensors(TorchDispatchMode):
    """Counts the storages that operations give, and takes them off when nothing refers to them any more.

    `seconds` is how long it may take: raise TakesTooLong at the operation after that.
    """

    def __init__(self, seconds: float = float("inf")) -> None:
        super().__init__()
        self._until = time.monotonic() + seconds
        self.now = 0
        self.peak = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation and count its results."""
        del types
        if time.monotonic() > self._until:
            raise TakesTooLong
        given = func(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, self._count, given)
        return given

    def mark(self) -> None:
        """Begin a new peak."""
        self.peak = self.now

    def leave_out(self, tensor: torch.Tensor) -> None:
        """Stop counting a tensor that is counted elsewhere."""
        self._free(tensor.untyped_storage()._cdata)

    def _count(self, tensor: torch.Tensor) -> None:
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
