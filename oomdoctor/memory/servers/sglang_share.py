"""The default share of a GPU that SGLang uses (mem_fraction_static): all but what it expects to need outside it.

Sources: sglang/srt/arg_groups/memory_hook.py (0.5.23), sglang/srt/server_args.py (0.4.6 to 0.5.18).
"""

from __future__ import annotations

from oomdoctor.case.shape import Shape, Vision
from oomdoctor.memory.servers.engine import ShareQuery
from oomdoctor.units import GIB, MIB

_SLACK, _PER_TOKEN, _PER_GRAPH, _PER_CARD, _LEAST, _LARGE = 512 * MIB, 1.5 * MIB, 2 * MIB, GIB / 8, 10 * GIB, 60 * GIB
"""Bytes outside the default fraction, at least `_LEAST` on a GPU above `_LARGE`."""
_FEWEST_TOKENS = 2048
_REPLICATED_GRAPH, _MANY_GRAPHS, _REPLICATED_MORE = 3 * MIB, 300, 1.5 * MIB
"""What data parallel attention adds per request with a graph and copy, and the extra above this many requests."""
_PREFILL_GRAPH, _LATENT_PREFILLS = 8 * MIB, 1.5 * GIB
_PREFILL_STRIDES = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 4097, 256), (4608, None, 512))
"""Tokens of prefills with a graph: cuda_graph_hook.py, generate_prefill_cuda_graph_batch_sizes."""
_KIMI_DELTA = "self_attn.f_proj"
"""A matrix that only Kimi's linear attention has."""
_SMALLEST = 0.01
_OF_TOWER, _LESS, _LEAST_OF_TOWER, _MOST_OF_TOWER = 0.95, 0.1, 0.8, 1.05
_LAYERS, _HIDDEN = 24, 1024
"""The tower size at which a vision-language model keeps its share, and how much a larger one reduces it. A tower whose config uses another
name for its layers counts as one of this size (adjust_mem_fraction_for_vlm)."""


def default_fraction(query: ShareQuery) -> float:
    """Return the default memory fraction of a GPU."""
    beside = _counted(query) if query.beside is None else query.beside
    profile = query.profile
    beside += profile.draft_beside if query.drafts else 0
    beside += profile.replicas_beside if query.replicas > 1 else 0
    return max(_SMALLEST, round((query.card - beside) / query.card * _share_with_tower(query.shape, profile.tower_share), 3))


def _counted(query: ShareQuery) -> float:
    beside = _SLACK + max(query.batched, _FEWEST_TOKENS) * _PER_TOKEN + query.graphs * _PER_GRAPH + query.cards * _PER_CARD
    if query.replicas > 1:
        each = _REPLICATED_GRAPH + (_REPLICATED_MORE if query.graphs > _MANY_GRAPHS else 0)
        beside += query.graphs * query.replicas * each
    if query.profile.prefill_graphs and query.graphs and not _goes_without_prefill_graphs(query):
        beside += _LATENT_PREFILLS if query.shape.latent is not None else _PREFILL_GRAPH * prefill_sizes(query.batched)
    return max(beside, _LEAST) if query.card > _LARGE else beside


def _goes_without_prefill_graphs(query: ShareQuery) -> bool:
    """Return whether prefills get no graphs: images, a pipeline, compressed keys, and Kimi's linear attention."""
    layers = query.shape.each
    names = (part.name for layer in layers for part in layer.parts)
    compressed = any(layer.compression is not None for layer in layers)
    return query.shape.vision is not None or query.pipeline > 1 or compressed or _KIMI_DELTA in names


def prefill_sizes(most: int) -> int:
    """Return the number of prefill sizes up to `most` tokens for which graphs are captured."""
    return len({size for first, end, step in _PREFILL_STRIDES for size in range(first, end or most + 1, step) if size <= most})


def _share_with_tower(shape: Shape, share: float) -> float:
    """Return the part of the share that a vision-language model keeps; 0 means `share` is calculated from its tower."""
    tower = shape.vision
    return 1.0 if tower is None else share or _of_tower(tower)


def _of_tower(tower: Vision) -> float:
    size = (tower.hidden_layers or _LAYERS) * (tower.hidden or _HIDDEN) ** 2 / (_LAYERS * _HIDDEN**2)
    return _OF_TOWER * max(_LEAST_OF_TOWER, min(_MOST_OF_TOWER, 1 - _LESS * (size - 1)))
