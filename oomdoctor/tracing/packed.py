"""Matrices of packed weights: what is stored, and what a product with one needs for a moment or keeps."""

from __future__ import annotations

from typing import Any

import torch

from oomdoctor.case.setup import Setup
from oomdoctor.errors import Untraceable
from oomdoctor.memory.model.weights import is_upcast

_MATRIX = 2
"""Dimensions of a matrix; experts that are one parameter have three."""


class _Product(torch.autograd.Function):
    """A product with a matrix that is written out in 16 bit for it, in both passes (MatMul4Bit of bitsandbytes/autograd/_functions.py)."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor, packed: torch.Tensor, shape: tuple[int, int], keeps_input: bool) -> torch.Tensor:
        ctx.shape = shape
        ctx.save_for_backward(packed, *((given,) if keeps_input else ()))
        return torch.nn.functional.linear(given, given.new_empty(shape))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        return gradient @ gradient.new_empty(ctx.shape), None, None, None


class PackedLinear(torch.nn.Linear):
    """A linear layer whose matrix is bytes of a packed format, its scales among them."""

    def __init__(self, plain: torch.nn.Linear, setup: Setup) -> None:
        # The attributes of a linear layer without its parameters.
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features, self.bias = plain.in_features, plain.out_features, plain.bias
        size = round(plain.weight.numel() * setup.weights.bytes_per_param)
        self.weight = torch.nn.Parameter(torch.empty(size, 1, dtype=torch.uint8, device="meta"), requires_grad=False)
        self._keeps_input = setup.stack.keeps_unpacked_input
        self._keeps_matrix = setup.weights.keeps_unpacked

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the product."""
        shape = (self.out_features, self.in_features)
        if torch.is_autocast_enabled("cpu"):
            input = input.to(torch.get_autocast_dtype("cpu"))
        if self._keeps_matrix:
            # Cut to int8, then a plain product, which keeps its operands (auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py).
            shifted = torch.empty(shape, dtype=torch.int8)
            given = torch.nn.functional.linear(input, shifted.to(input.dtype))
        else:
            given = _Product.apply(input, self.weight, shape, self._keeps_input)
        return given if self.bias is None else given + self.bias.to(given.dtype)


def pack(model: torch.nn.Module, setup: Setup) -> None:
    """Put packed layers in the place of the linear ones that the format of a run packs.

    All but the output projection: bitsandbytes, GPTQ and AWQ leave it out (get_keys_to_not_convert of
    transformers/quantizers/quantizers_utils.py). What is not packed becomes fp32 where the run prepares the model so.

    Raise Untraceable where a matrix is none of a linear layer.
    """
    heads = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    for parent in list(model.modules()):
        if any(param.dim() > _MATRIX for param in parent.parameters(recurse=False)):
            raise Untraceable("packed weights are traced for linear layers only, and this model has other matrices")
        for name, layer in list(parent.named_children()):
            if type(layer) is torch.nn.Linear and (layer is not heads or setup.stack.packs_head):
                setattr(parent, name, PackedLinear(layer, setup))
    for param in model.parameters():
        param.requires_grad_(False)
        if is_upcast(setup) and param.is_floating_point():
            param.data = param.data.float()
