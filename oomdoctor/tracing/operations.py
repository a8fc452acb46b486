"""Each operation that the code of a model runs, and the tensors that it gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


class TakesTooLong(Exception):
    """The code that is counted runs on for longer than it may."""


class WatchedOperations(TorchDispatchMode):
    """Shows what operations give to `seen`.

    `seconds` is how long it may take: raise TakesTooLong at the operation after that.
    """

    def __init__(self, seconds: float = float("inf")) -> None:
        super().__init__()
        self._until = time.monotonic() + seconds

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation and show its results."""
        del types
        if time.monotonic() > self._until:
            raise TakesTooLong
        given = func(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, lambda tensor: self.seen(tensor, func), given)
        return given

    def seen(self, tensor: torch.Tensor, func: Callable[..., Any]) -> None:
        """Take note of a tensor that an operation gave."""
        raise NotImplementedError
