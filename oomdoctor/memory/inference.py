"""Generating: the KV cache, and what reading the prompt takes for a moment."""

from __future__ import annotations

from oomdoctor.case.estimate import Setup, Term
from oomdoctor.memory.activations import tokens, width
from oomdoctor.memory.part import held
from oomdoctor.memory.term import term
from oomdoctor.memory.weights import HALF


def cache_per_token(setup: Setup) -> float:
    """Bytes of the KV cache for one token, all layers."""
    shape = setup.shape
    if shape.latent is not None:
        # Only the narrow middle and the rotary part are kept (arXiv 2405.04434, section 2.1).
        return shape.layers * (shape.latent.kv_rank + shape.latent.rope) * setup.cache_bytes
    return shape.layers * (shape.key + shape.value) * setup.cache_bytes


def heads_share(setup: Setup) -> float:
    """The share of a layer's cache that one tensor parallel card has.

    Heads are divided, but a card has one at least, and what latent attention keeps is on all of them (vllm/config/model.py,
    get_num_kv_heads; sglang/srt/configs/model_config.py).
    """
    shape = setup.shape
    return 1.0 if shape.latent is not None else max(1.0, shape.kv_heads / setup.layout.tensor) / shape.kv_heads


def cache(setup: Setup) -> Term:
    """The KV cache of all samples at full length."""
    shape = setup.shape
    layers = shape.layers
    windowed = (
        0 if shape.window is None or shape.window >= setup.length else layers if shape.windowed_layers is None else shape.windowed_layers
    )
    full = (
        cache_per_token(setup) / layers * ((layers - windowed) * setup.length + windowed * min(setup.length, shape.window or setup.length))
    )
    size = setup.batch * held(setup, full) * heads_share(setup)
    # A window is used by caches that know it; plain ones keep every token.
    high = 1.02 if not windowed else cache_per_token(setup) * setup.length / full
    return term("kv cache", size, "2 x layers x kv heads x head x bytes x tokens: transformers/cache_utils.py", low=0.98, high=high)


def prompt(setup: Setup) -> Term:
    """One layer's MLP and hidden states for the whole prompt: gate, its activation and the other half, and the residual."""
    shape = setup.shape
    size = tokens(setup) * HALF * (3 * width(shape) + 2 * shape.hidden) / setup.layout.tensor
    return term("prompt", size, "one layer for every token of the prompt (transformers/models/llama/modeling_llama.py)", low=0.0, high=1.3)
