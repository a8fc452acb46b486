"""Operations as they run on a card, where the host's own keep something else for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from oomdoctor.tracing.fused import attention

_functional: Any = torch.nn.functional

_WIDENED = frozenset({
    torch.cumprod, torch.cumsum, torch.exp, torch.log_softmax, torch.pow, torch.rsqrt, torch.softmax,
    torch.Tensor.__pow__, torch.Tensor.cumsum, torch.Tensor.exp, torch.Tensor.pow, torch.Tensor.rsqrt, torch.Tensor.softmax,
    _functional.group_norm, _functional.layer_norm, _functional.log_softmax, _functional.softmax, _functional.softplus,
})  # fmt: skip
"""What autocast runs in fp32 on a card and in 16 bit on the host (torch/amp, "CUDA Ops that can autocast to float32")."""


_GROUPED = frozenset({_functional.grouped_mm, torch._grouped_mm})
"""Products of experts: without values torch does them in bf16 only (torch/_meta_registrations.py)."""


class _GroupedProduct(torch.autograd.Function):
    """The rows of each expert times its matrix, by sizes alone."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows, matrices)
        return rows.new_empty(rows.shape[0], matrices.shape[-1])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        del gradient
        rows, matrices = ctx.saved_tensors
        return torch.empty_like(rows), torch.empty_like(matrices)


class CardKernels(TorchFunctionMode):
    """Runs what is called as a card would: dropout keeps one byte for each element, fused attention no scores, autocast widens."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, or what stands for it on a card."""
        del types
        named = dict(kwargs or {})
        if func is _functional.dropout:
            return _dropout(*args, **named)
        if func is _functional.scaled_dot_product_attention:
            return attention(*(*args, *(named[name] for name in ("query", "key", "value") if name in named))[:3])
        if func in _GROUPED and args[0].dtype != torch.bfloat16:
            return _GroupedProduct.apply(args[0], args[1])
        if func in _WIDENED and torch.is_autocast_enabled("cpu"):
            args, named = tree_map_only(torch.Tensor, _wide, (args, named))
        return func(*args, **named)


def _dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    del inplace
    return torch.native_dropout(input, p, training)[0] if training and p else input


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor
