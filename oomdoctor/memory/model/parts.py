"""The matrices of a model by their names in checkpoints, whether its layers differ or not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from oomdoctor.case.shape import Latent, Part, Shape
from oomdoctor.memory.model import parameters as count


@lru_cache(maxsize=256)
def layer_parts(shape: Shape) -> tuple[tuple[Part, ...], ...]:
    """Return the parts of every layer."""
    if shape.each:
        return tuple(layer.parts for layer in shape.each)
    return tuple(_parts(shape, number) for number in range(shape.layers))


def _parts(shape: Shape, number: int) -> tuple[Part, ...]:
    matrices = (*_attention(shape), *_mlp(shape, number))
    rest = count.layer(shape, number) - sum(part.size for part in matrices)
    return (*matrices, Part("norms", rest, is_matrix=False))


def _attention(shape: Shape) -> Iterator[Part]:
    if shape.latent is not None:
        yield from _latent(shape, shape.latent)
        return
    wide = (("q", shape.query), ("k", shape.key), ("v", shape.value), ("o", shape.query))
    yield from (Part(f"self_attn.{name}_proj", shape.hidden * width) for name, width in wide)


def _latent(shape: Shape, latent: Latent) -> Iterator[Part]:
    query = shape.heads * (latent.nope + latent.rope)
    if latent.q_rank is None:
        yield Part("self_attn.q_proj", shape.hidden * query)
    else:
        yield Part("self_attn.q_a_proj", shape.hidden * latent.q_rank)
        yield Part("self_attn.q_b_proj", latent.q_rank * query)
    yield Part("self_attn.kv_a_proj_with_mqa", shape.hidden * (latent.kv_rank + latent.rope))
    yield Part("self_attn.kv_b_proj", latent.kv_rank * shape.heads * (latent.nope + latent.value))
    yield Part("self_attn.o_proj", shape.heads * latent.value * shape.hidden)


def _mlp(shape: Shape, number: int) -> Iterator[Part]:
    experts = shape.experts
    if experts is None or number < experts.dense_layers:
        names = ("gate", "up", "down") if shape.gated else ("up", "down")
        yield from (Part(f"mlp.{name}_proj", shape.hidden * shape.intermediate) for name in names)
        return
    each = 3 * shape.hidden * experts.intermediate
    yield Part("mlp.experts", each * experts.routed, routed=True)
    if experts.shared:
        yield Part("mlp.shared_experts", each * experts.shared)
