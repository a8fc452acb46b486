"""vLLM's cache for layers with compressed keys (DeepSeek V4): keys, a window, and compression states, in pages of three sizes.

Sources: vllm/models/deepseek_v4/attention.py and compressor.py (blocks and windows), vllm/v1/core/kv_cache_utils.py
(_get_kv_cache_groups_uniform_groups, _approximate_gcd, and the groups of one type in _max_memory_usage_bytes_from_groups).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oomdoctor.case.serving import Server
from oomdoctor.case.shape import CompressedKeys, Shape

_BLOCK, _WINDOW_BLOCK = 256, 64
"""Tokens per block of keys, and of the window."""
_OVERLAPS = 4
_STATE_BLOCK, _WIDE_STATE_BLOCK = 4, 8
"""Tokens per block of states if compression windows overlap, and otherwise."""
_ALIGNED = 576
_SCALES, _INDEX_SCALE = 8, 4
"""Bytes of scales for a key whose rotary part stays in 16 bit, and for an indexer key."""


def compressed_request_bytes(shape: Shape, server: Server, length: int) -> int | None:
    """Return the cache of one request of this many tokens; None for a model without compressed keys. Every GPU has all of it."""
    layers = [layer.compression for layer in shape.each if layer.compression is not None]
    if not layers:
        return None
    ahead, ratios = server.batched * server.profile.steps_ahead, Counter(layer.ratio for layer in layers if layer.ratio)
    sizes = {size for layer in layers for size in _pages(layer)}
    many = [max(ratios.values(), default=1), len(layers) + bool(server.drafted), *ratios.values()]
    tuples = _nearest_divisor(many, many[0])
    groups = [-(-each // tuples) for each in many]
    blocks = [
        -(-length // _BLOCK),
        _blocks(layers[0].window, _WINDOW_BLOCK, ahead, length),
        *(_state_blocks(ratio, ahead, length) for ratio in ratios),
    ]
    deepest = max(-(-each // split) for each, split in zip(many, groups))
    return deepest * sum(sizes) * sum(group * block for group, block in zip(groups, blocks))


def _pages(layer: CompressedKeys) -> tuple[int, ...]:
    """Return the page sizes of a layer: its keys, and those of its indexer."""
    if not layer.ratio:
        return ()
    keys = _aligned(_BLOCK // layer.ratio * (layer.head + layer.rope + _SCALES))
    return (keys, _aligned(_BLOCK // layer.ratio * (layer.index + _INDEX_SCALE))) if layer.index else (keys,)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def _state_blocks(ratio: int, ahead: int, length: int) -> int:
    overlaps = ratio == _OVERLAPS
    return _blocks(2 * ratio if overlaps else ratio, _STATE_BLOCK if overlaps else _WIDE_STATE_BLOCK, ahead, length)


def _blocks(window: int, block: int, ahead: int, length: int) -> int:
    return -(-min(window - 1 + ahead, length) // block) + 1


def _nearest_divisor(many: Sequence[int], least: int) -> int:
    """Return the group size that splits these numbers of layers with the fewest left empty; of equal ones the largest."""
    return min(range(least, max(many) + 1), key=lambda size: (sum(-each % size for each in many), -size))
