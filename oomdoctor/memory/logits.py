"""The logits for all tokens, and the copies that the loss makes of them."""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.activations import shortest, tokens
from oomdoctor.memory.model.placement import card_placement
from oomdoctor.memory.term import term

_FUSED = 6
"""Bytes per token and hidden element: a fused loss processes about tokens x hidden / vocabulary rows at a time
(liger_kernel/ops/fused_linear_cross_entropy.py), in 16 bit and in fp32."""
_GRADIENT = 4
"""Bytes of the gradient of one logit, in fp32."""
_KEPT = 4
"""Accelerate converts the logits of an evaluation to fp32 (accelerate/utils/operations.py, convert_outputs_to_fp32)."""


def loss(setup: Setup, *, graded: bool = True) -> Term:
    """Return logits and the loss's copies at the end of the forward or the start of the backward pass, whichever holds more.

    An evaluation has no gradient of them (`graded` is false), a GPU without the output projection has no logits.
    """
    scored = tokens(setup) if card_placement(setup).scores else 0.0
    if setup.written is not None:
        scored *= setup.written / setup.length
    if setup.fused_loss:
        return term("logits", _FUSED * scored * setup.shape.hidden, "a fused loss processes a few rows at a time", low=0.3, high=2.0)
    stack = setup.stack
    # Accelerator._prepare_deepspeed of accelerate/accelerator.py omits convert_outputs_to_fp32, which prepare_model wraps around forward:
    # half of that copy, since versions that convert logits to fp32 themselves have it either way.
    middle = stack.logits - (stack.converts / 2 if setup.layout.engine == "deepspeed" else 0.0)
    each = middle if graded else max(middle - _GRADIENT, _GRADIENT)
    # Tensor parallel heads split the vocabulary; the loss of torchtitan and Megatron stays split.
    size = each * setup.shape.vocab * scored / setup.layout.tensor
    low, high = stack.logits_low / middle * shortest(setup), stack.logits_high / middle
    return term("logits", size, f"{each:g} bytes x vocabulary x tokens: {stack.source}", low=low, high=high)


def gathered(setup: Setup) -> Term | None:
    """Return the logits of all GPUs, which DataParallel gathers on the first one with the rest of what a model returns."""
    cards = card_placement(setup).outputs
    if cards == 1 or setup.fused_loss:
        return None
    size = _KEPT * setup.shape.vocab * tokens(setup) * cards
    return term("gathered logits", size, "cards x tokens x vocabulary x 4: torch/nn/parallel/data_parallel.py", low=0.5 * shortest(setup))


def kept_for_metrics(setup: Setup) -> Term | None:
    """Return the logits that Trainer collects on the GPU: all of them unless eval_accumulation_steps is set."""
    if not setup.eval_samples or not card_placement(setup).scores:
        return None
    size = _KEPT * setup.shape.vocab * setup.length * setup.eval_samples
    return term("collected logits", size, "samples x tokens x vocabulary x 4: transformers/trainer.py, evaluation_loop", low=0.3, high=1.1)
