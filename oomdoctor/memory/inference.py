"""Generation: the KV cache, and the temporary memory for reading the prompt."""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.memory.activations import width
from oomdoctor.memory.model.placement import card_placement, held
from oomdoctor.memory.model.weights import HALF
from oomdoctor.memory.term import term

_GENERATED = 2048
"""Tokens of a completion if only the whole length is known: half of it, up to this many. An assumption."""
_LOGIT = 2
_ALL_LOGITS = 6
"""Bytes of the logits per vocabulary entry and token."""


def cache_per_token(setup: Setup) -> float:
    """Return the bytes of the KV cache per token, all layers; layers with a window or a state count while they still grow."""
    shape = setup.shape
    if shape.each:
        return float(sum(layer.cache * setup.cache_bytes + layer.indexed for layer in shape.each))
    return shape.layers * _plain_layer(setup)


def _plain_layer(setup: Setup) -> float:
    """Return the bytes per token in one layer of a model whose layers are alike."""
    shape = setup.shape
    if shape.latent is not None:
        # Only the narrow latent and the rotary part are kept (arXiv 2405.04434, section 2.1).
        return (shape.latent.kv_rank + shape.latent.rope) * setup.cache_bytes
    return (shape.key + shape.value) * setup.cache_bytes


def sequence_cache(setup: Setup, tokens: float, added: int = 0) -> float:
    """Return the bytes that one sequence of this many tokens has in the cache, all layers and heads, including states.

    A window keeps its tokens and the `added` ones of a step (vllm SlidingWindowSpec).
    """
    shape = setup.shape
    if shape.each:
        return sum(
            (layer.cache * setup.cache_bytes + layer.indexed) * _windowed(tokens, layer.window, added) + layer.state for layer in shape.each
        )
    windowed = 0 if shape.window is None else shape.layers if shape.windowed_layers is None else shape.windowed_layers
    return _plain_layer(setup) * ((shape.layers - windowed) * tokens + windowed * _windowed(tokens, shape.window, added))


def _windowed(tokens: float, window: int | None, added: int) -> float:
    return tokens if window is None else min(tokens, window + added)


def keeps_nothing(shape: Shape) -> bool:
    """Return whether a model keeps nothing of a sequence: it reads it once, and no token follows."""
    return bool(shape.each) and not any(layer.cache or layer.indexed or layer.state for layer in shape.each)


def heads_fraction(setup: Setup) -> float:
    """Return the fraction of a layer's cache that one tensor parallel GPU has.

    Heads are divided, but a GPU has at least one, and what latent attention keeps is on all of them (vllm/config/model.py,
    get_num_kv_heads; sglang/srt/configs/model_config.py).
    """
    shape, layout = setup.shape, setup.layout
    return 1.0 if shape.latent is not None else max(1.0, shape.kv_heads * layout.replicas / layout.tensor) / shape.kv_heads


def cache(setup: Setup, share: float = 1.0) -> Term:
    """Return the KV cache of all samples at full length, or a fraction of it."""
    full = sequence_cache(setup, setup.length)
    size = share * setup.batch * held(setup, full) * heads_fraction(setup)
    # A window is used by caches that support it; plain ones keep every token.
    every = cache_per_token(setup) * setup.length
    high = max(1.02, every / full) if full else 1.02
    return term("kv cache", size, "2 x layers x kv heads x head x bytes x tokens: transformers/cache_utils.py", low=0.98, high=high)


def prompt(setup: Setup) -> Term:
    """Return what one layer holds for every token of the prompt, in the middle of its MLP."""
    samples = setup.batch * setup.sequences / setup.layout.context
    prompt_tokens = samples * prompted(setup)
    each = (max(_layer(setup.shape), _scored(setup)) + _held(setup)) / setup.layout.tensor
    if setup.prompt_logits:
        # By then the layer's tensors have been freed.
        basis = "logits for every prompt token, 16-bit and fp32: transformers/models/llama/modeling_llama.py before 4.45"
        return term("prompt", max(prompt_tokens * each, all_logits(setup)), basis, low=0.6, high=1.1)
    basis = "one layer for every prompt token: transformers/models/llama/modeling_llama.py"
    # generate() requests the logits of the last token; calling the model directly returns all of them.
    bare = 0.0 if setup.prompt_logits is False else all_logits(setup) * _LOGIT / _ALL_LOGITS
    together = _together(setup.shape) / _layer(setup.shape)
    return term("prompt", prompt_tokens * each, basis, low=0.0, high=1.3 * together + bare / (prompt_tokens * each))


def all_logits(setup: Setup) -> float:
    """Return the bytes of the logits of all prompt tokens, in 16 bit and in fp32; 0 on GPUs without the output projection."""
    if not card_placement(setup).scores:
        return 0.0
    return _ALL_LOGITS * setup.shape.vocab / setup.layout.tensor * setup.batch * setup.sequences * prompted(setup) / setup.layout.context


def prompted(setup: Setup) -> float:
    """Return the tokens of a prompt: what is not generated. An evaluation generates nothing."""
    return setup.length if setup.task == "train" else max(setup.length / 2, setup.length - _GENERATED)


def _layer(shape: Shape) -> int:
    """Return the bytes per token at the peak of a layer.

    The gate, its activation, the other half and their product minus the one that is freed, and four hidden states: the embedding's
    output, the layer's input, the residual and the norm's output, which callers hold.

    Counted in transformers 4.31 to 5.23: every storage that is live at the peak of a first forward pass under no_grad.
    """
    hidden, experts = shape.hidden, shape.experts
    if experts is not None:
        # One expert after another, with an even share of the tokens; the sum of their outputs and one expert's tokens alongside.
        tokens = min(1.0, experts.active / experts.routed)
        return round(HALF * (3 * experts.intermediate * tokens + 3 * experts.intermediate * experts.shared + 6 * hidden))
    wide = 2 if not shape.gated else 4 if shape.fused_gate else 3
    return HALF * (wide * shape.intermediate + 4 * hidden)


def _scored(setup: Setup) -> float:
    """Return the bytes per token in the middle of eager attention, which goes through all pairs of tokens.

    16-bit scores, their fp32 copy and the fp32 softmax, a mask, and queries, keys and values for every head along with three hidden states.
    """
    if not setup.eager_attention:
        return 0.0
    shape = setup.shape
    return prompted(setup) * (10 * shape.heads + HALF) + HALF * (3 * shape.hidden + 3 * shape.query)


def _together(shape: Shape) -> int:
    """Return the same if all tokens of all experts are computed at once (grouped_mm of transformers 5)."""
    if shape.experts is None:
        return _layer(shape)
    each = shape.hidden * (shape.experts.active + shape.experts.shared)
    return HALF * (max(4 * width(shape) + each, 4 * each) + 4 * shape.hidden)


def _held(setup: Setup) -> float:
    """Return the excess bytes per token that the cache holds while keys and values are views of one matrix's output."""
    shape = setup.shape
    return HALF * card_placement(setup).layers * (shape.query + shape.key) if shape.fused_qkv else 0.0
