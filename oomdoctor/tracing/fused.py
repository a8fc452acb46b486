"""Attention as a fused kernel of a card has it: it keeps its inputs, its output and one number a row, and never the scores."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface

NAME = "oomdoctor_fused"


class _Fused(torch.autograd.Function):
    """Sizes without values: what FlashAttention saves for its backward pass (arXiv 2205.14135)."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        batch, heads, length, _ = query.shape
        given = query.new_empty(batch, length, heads, value.shape[-1])
        sums = query.new_empty(batch, heads, length, dtype=torch.float32)
        ctx.save_for_backward(query, key, value, given, sums)
        return given

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        del gradient
        query, key, value, _, _ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the output of attention: (batch, heads, tokens, width of a value's head), laid out token by token as the kernels do.

    Under autocast it gets 16-bit copies (torch/amp, "CUDA Ops that can autocast to float16").
    """
    if torch.is_autocast_enabled("cpu"):
        narrow = torch.get_autocast_dtype("cpu")
        query, key, value = query.to(narrow), key.to(narrow), value.to(narrow)
    return _Fused.apply(query, key, value).transpose(1, 2)


def _attention(
    module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, None]:
    del module
    return attention(query, key, value).transpose(1, 2), None


def _no_mask(*_: Any, **__: Any) -> None:
    return None


def register() -> str:
    """Register it with transformers, and return the name that `attn_implementation` takes."""
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, _no_mask)
    return NAME
