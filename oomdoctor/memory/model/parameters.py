"""How many parameters a model has, part by part: exact, so that no estimation error comes from here.

The rules are those of the model classes in transformers 4.57 (modeling_llama.py, modeling_qwen3_moe.py,
modeling_deepseek_v3.py ...); tests check them against published counts.
"""

from __future__ import annotations

from functools import lru_cache

from oomdoctor.case.shape import Experts, Latent, Shape


@lru_cache(maxsize=1024)
def total(shape: Shape) -> int:
    """Return all parameters, including the vision tower."""
    return text(shape) + (shape.vision.params if shape.vision else 0)


@lru_cache(maxsize=1024)
def text(shape: Shape) -> int:
    """Return the parameters of the language model."""
    outside = shape.extra + embedding(shape) + output(shape) + positions(shape) + final_norm(shape)
    if shape.each:
        return outside + sum(layer(shape, number) for number in range(len(shape.each)))
    with_experts = expert_layers(shape)
    layers = (shape.layers - with_experts) * layer(shape, 0) + with_experts * largest_layer(shape)
    return outside + layers


@lru_cache(maxsize=1024)
def active(shape: Shape) -> int:
    """Return the parameters that one token goes through."""
    if shape.experts is None:
        return text(shape)
    return text(shape) - routed(shape) * (shape.experts.routed - shape.experts.active) // shape.experts.routed


def embedding(shape: Shape) -> int:
    """Return the parameters of the token embedding table."""
    return shape.vocab * shape.hidden


def output(shape: Shape) -> int:
    """Return the parameters of the output projection; 0 if it is the embedding."""
    return 0 if shape.tied or not shape.scores else shape.vocab * shape.hidden + (shape.vocab if shape.head_bias else 0)


def positions(shape: Shape) -> int:
    """Return the parameters of the learned positions."""
    return shape.positions * shape.hidden


def final_norm(shape: Shape) -> int:
    """Return the parameters of the norm before the output projection."""
    return norm(shape)


def norm(shape: Shape) -> int:
    """Return the parameters of one norm over the hidden size: a scale, and with LayerNorm a shift."""
    return shape.hidden if shape.rms else 2 * shape.hidden


@lru_cache(maxsize=1024)
def layer(shape: Shape, number: int) -> int:
    """Return the parameters of layer `number`, from 0."""
    if shape.each:
        return sum(part.size for part in shape.each[number].parts)
    return attention(shape) + mlp(shape, number) + norms(shape)


def largest_layer(shape: Shape) -> int:
    """Return the parameters of the largest layer: the last, since dense layers come first."""
    if shape.each:
        return max(layer(shape, number) for number in range(len(shape.each)))
    return layer(shape, shape.layers - 1)


def attention(shape: Shape) -> int:
    """Return the parameters of projections, their biases and the norms of queries and keys."""
    if shape.latent is not None:
        return _latent_attention(shape, shape.latent)
    h, q, k, v = shape.hidden, shape.query, shape.key, shape.value
    bias = (q + k + v) * shape.attention_bias + h * shape.output_bias
    return attention_linears(shape) + bias + _qk_norm(shape)


def attention_linears(shape: Shape) -> int:
    """Return the parameters of the attention matrices alone: what quantization and LoRA apply to."""
    if shape.latent is not None:
        return _latent_attention(shape, shape.latent) - (shape.latent.q_rank or 0) - shape.latent.kv_rank
    return shape.hidden * (2 * shape.query + shape.key + shape.value)


def _qk_norm(shape: Shape) -> int:
    if not shape.qk_norm:
        return 0
    return shape.query + shape.key if shape.qk_norm_full else 2 * shape.head


def _latent_attention(shape: Shape, latent: Latent) -> int:
    """Return q_a, its norm and q_b (or one q), kv_a with the rotary part, its norm, kv_b, o (modeling_deepseek_v3.py)."""
    h, heads = shape.hidden, shape.heads
    wide = heads * (latent.nope + latent.rope)
    queries = h * wide if latent.q_rank is None else latent.q_rank * (h + 1 + wide)
    down = h * (latent.kv_rank + latent.rope) + latent.kv_rank
    up = latent.kv_rank * heads * (latent.nope + latent.value)
    return queries + down + up + heads * latent.value * h


def mlp(shape: Shape, number: int) -> int:
    """Return the parameters of the MLP of layer `number`, or of its experts and their router."""
    experts = shape.experts
    if experts is None or number < experts.dense_layers:
        return dense_mlp(shape) + (shape.intermediate * (2 if shape.gated else 1) + shape.hidden) * shape.mlp_bias
    return expert_linears(shape, experts) + _router(shape, experts)


def dense_mlp(shape: Shape) -> int:
    """Return the parameters of the matrices of an ordinary MLP."""
    return (3 if shape.gated else 2) * shape.hidden * shape.intermediate


def expert_linears(shape: Shape, experts: Experts) -> int:
    """Return the parameters of the matrices of all experts in a layer; all are resident, whatever a token uses."""
    return 3 * shape.hidden * experts.intermediate * (experts.routed + experts.shared)


def _router(shape: Shape, experts: Experts) -> int:
    return experts.routed * (shape.hidden + experts.correction_bias) + shape.hidden * experts.shared_gate


def norms(shape: Shape) -> int:
    """Return the parameters of the norms of a layer, without those of queries and keys."""
    count = 4 if shape.sandwich_norm else 1 if shape.shared_norm else 2
    return count * norm(shape)


def routed(shape: Shape) -> int:
    """Return the parameters of all routed experts: what expert parallel GPUs divide."""
    experts = shape.experts
    if shape.each:
        return sum(part.size for layer_of in shape.each for part in layer_of.parts if part.routed)
    return 0 if experts is None else expert_layers(shape) * 3 * shape.hidden * experts.intermediate * experts.routed


def expert_layers(shape: Shape) -> int:
    """Return how many layers have experts."""
    if shape.each:
        return sum(any(part.routed for part in layer_of.parts) for layer_of in shape.each)
    return 0 if shape.experts is None else max(0, shape.layers - shape.experts.dense_layers)


@lru_cache(maxsize=1024)
def linears(shape: Shape) -> int:
    """Return the parameters of the matrices inside the layers: what a quantizer packs."""
    if shape.each:
        return sum(part.size for layer_of in shape.each for part in layer_of.parts if part.is_matrix)
    dense = shape.layers - expert_layers(shape)
    experts = expert_layers(shape) * expert_linears(shape, shape.experts) if shape.experts else 0
    return shape.layers * attention_linears(shape) + dense * dense_mlp(shape) + experts


def largest_linear(shape: Shape) -> int:
    """Return the parameters of the largest single matrix inside a layer."""
    widest = max(
        shape.intermediate if shape.experts is None or shape.experts.dense_layers else 0, shape.experts.intermediate if shape.experts else 0
    )
    return max(shape.hidden * widest, shape.hidden * shape.query)
