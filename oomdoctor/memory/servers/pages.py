"""How vLLM's cache manager lays out layers that keep different things: pages of one size, and groups with equal numbers of layers.

Sources: vllm/v1/core/kv_cache_utils.py (unify_kv_cache_spec_page_size, _get_kv_cache_groups_uniform_page_size,
_max_memory_usage_bytes_from_groups), vllm/v1/kv_cache_interface.py (max_memory_usage_bytes), vllm/platforms/interface.py
(_align_hybrid_block_size).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from msgspec import Struct

from oomdoctor.case.serving import Server
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.memory import inference
from oomdoctor.memory.servers.compressed_pages import compressed_request_bytes

BLOCK = 16
"""Tokens per cache block: CacheConfig.block_size of vLLM. A cache without a block is none."""
_ALIKE = 1.25
"""Kinds whose numbers of layers are closer than this are padded to the larger number."""


class _Kept(Struct, frozen=True):
    """What layers of one kind keep on one GPU. Either a token has bytes, or a sequence has a state."""

    token: float
    window: int | None = None
    state: float = 0.0


def request_bytes(setup: Setup, server: Server) -> int | None:
    """Return the cache of one full-length request on one GPU; None if that length is unknown."""
    if server.length is None:
        return None
    if (compressed := compressed_request_bytes(setup.shape, server, server.length)) is not None:
        return round(compressed / setup.layout.pipeline)
    kinds = _kinds(setup, server)
    if _are_alike(kinds):
        # Layers of one kind are one group, however wide each is.
        size = sum(many * _blocks(kind, server, BLOCK) * _page(kind, BLOCK) for kind, many in kinds.items())
    else:
        size = _grouped(kinds, server)
    return round(size / setup.layout.pipeline)


def block_token(setup: Setup, server: Server) -> float | None:
    """Return the bytes per token as printed by releases that count the blocks of one group; None if all layers are alike.

    Source: vllm 0.20.0 v1/core/kv_cache_utils.py, _report_kv_cache_config.
    """
    kinds = _kinds(setup, server)
    if _are_alike(kinds):
        return None
    group, _ = _group(kinds)
    groups = sum(-(-many // group) for many in kinds.values())
    return group * groups * max(kind.token for kind in kinds) / (setup.layout.pipeline * server.dealt) or None


def states_bytes(setup: Setup, server: Server) -> int:
    """Return the cache that has a block for the state of every request that may run at a time; 0 for layers without states."""
    kinds = _kinds(setup, server)
    if not any(kind.state for kind in kinds):
        return 0
    group, page = _group(kinds)
    return round(server.requests * group * page / setup.layout.pipeline)


def _are_alike(kinds: Counter[_Kept]) -> bool:
    return len({kind.state > 0 or kind.window for kind in kinds}) <= 1


def _grouped(kinds: Counter[_Kept], server: Server) -> float:
    """Return a request's bytes if kinds differ."""
    group, page = _group(kinds)
    held = sum(-(-many // group) * _blocks(kind, server, page / kind.token if kind.token else 1) for kind, many in kinds.items())
    return group * page * held


def _group(kinds: Counter[_Kept]) -> tuple[int, float]:
    """Return the layers per group and the bytes per page: every page is as large as the largest, every group has equally many pages."""
    state, widest = max(kind.state for kind in kinds), max(kind.token for kind in kinds)
    # The widest attention has as many tokens per block as a state needs, in steps of a block.
    page = max(BLOCK * widest, -(-state // (BLOCK * widest)) * BLOCK * widest if widest else state)
    fewest, most = min(kinds.values()), max(kinds.values())
    return (most if most < _ALIKE * fewest else fewest), page


def _page(kind: _Kept, block: int) -> float:
    return kind.state or block * kind.token


def _blocks(kind: _Kept, server: Server, block: float) -> int:
    """Return the pages of one request in one layer: for a window, its contents and what the steps in flight add."""
    if kind.state:
        # The state that it writes, and with cached prefixes (mamba_cache_mode `align`) the one that it came from.
        return 1 + server.caches_prefixes + server.drafted
    length = -(-(server.length or 0) // server.dealt)
    if kind.window is None:
        return -int(-length // block)
    return -int(-min(kind.window - 1 + server.batched * server.profile.steps_ahead, length) // block) + 1


def _kinds(setup: Setup, server: Server) -> Counter[_Kept]:
    """Return how many layers keep what on one GPU."""
    heads, width, tensor = inference.heads_fraction(setup), setup.cache_bytes, setup.layout.tensor
    layers_of: Counter[_Kept] = Counter()
    layers = layer_kinds(setup.shape)
    whole = server.whole_windows and any(window is None and (cache or indexed) for (cache, indexed, window, _), _ in layers)
    for (cache, indexed, window, state), many in layers:
        if cache or indexed:
            layers_of[_Kept((cache * width + indexed) * heads, None if whole else window)] += many
        if state:
            layers_of[_Kept(0.0, None, state / tensor)] += many
    if server.drafted:
        # The layer that drafts tokens attends like the widest of the others.
        layers_of[max(layers_of, key=lambda kind: (kind.window is None, kind.token))] += 1
    return layers_of


@lru_cache(maxsize=256)
def layer_kinds(shape: Shape) -> tuple[tuple[tuple[int, int, int | None, int], int], ...]:
    """Return what layers keep (values and further bytes per token, a window, bytes of a state), and how many keep the same."""
    if shape.each:
        return tuple(Counter((layer.cache, layer.indexed, layer.window, layer.state) for layer in shape.each).items())
    cache = shape.latent.kv_rank + shape.latent.rope if shape.latent else shape.key + shape.value
    windowed = 0 if shape.window is None else shape.layers if shape.windowed_layers is None else shape.windowed_layers
    plain = (((cache, 0, shape.window, 0), windowed), ((cache, 0, None, 0), shape.layers - windowed))
    return tuple(kind for kind in plain if kind[1])
