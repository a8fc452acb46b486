"""SGLang: its cache is fraction x what is free at the start - weights; activations and CUDA graphs must do with the rest.

Source: sglang/srt/mem_cache/kv_cache_configurator.py, _profile_available_bytes. No length of a request is refused at the start.
"""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.event import Value
from oomdoctor.case.serving import ByteRange, Served, Server, StartupCheck
from oomdoctor.case.setup import Setup
from oomdoctor.memory import inference
from oomdoctor.memory.servers.engine import ServerEngine
from oomdoctor.memory.servers.pages import layer_kinds
from oomdoctor.memory.servers.startup_budget import (
    block_bytes,
    cuda_context,
    cuda_graphs,
    loaded_weights,
    one_step,
    remaining,
    served,
    token_bytes,
)
from oomdoctor.units import GIB, MIB

_ATTENTION = 0.4 * GIB
"""Buffers for attention, made beside the share: SGLANG_FLASHINFER_WORKSPACE_SIZE is 384 MiB (sglang/srt/environ.py)."""
_GRAPH = 0.4 * MIB
"""Of one CUDA graph and layer: SGLang prints 0.9 GiB for 61 layers and 13 sizes, and less where there are more of them."""
_SMALL_SIZES, _STRIDES = (1, 2, 4, 8, 12), ((16, 257, 8), (272, 512, 16), (512, None, 32))
"""Batches with a CUDA graph: sglang/srt/arg_groups/cuda_graph_hook.py, generate_decode_cuda_graph_batch_sizes (0.5.23)."""
_SLACK, _PER_TOKEN, _PER_GRAPH, _PER_CARD, _LEAST, _LARGE = 512 * MIB, 1.5 * MIB, 2 * MIB, GIB / 8, 10 * GIB, 60 * GIB
"""Bytes beside the default fraction, at least `_LEAST` of a card above `_LARGE`: sglang/srt/arg_groups/memory_hook.py,
handle_gpu_memory_settings (0.5.23)."""
_FEWEST_TOKENS = 2048
_STATES = 0.9
"""Bytes for states beside each byte for keys and values: mamba_full_memory_ratio (sglang/srt/server_args.py)."""


def start(setup: Setup, server: Server, total: int) -> Served:
    """Return what SGLang makes of a card of `total` bytes, with its checks in the order in which a start meets them."""
    context, loaded, step = cuda_context(setup), loaded_weights(setup, server), one_step(setup, server, _ATTENTION)
    graphs = cuda_graphs(setup, server, graph_sizes(server.requests), _GRAPH)
    free = remaining(total, (context,))
    static, rest = (
        ByteRange(*(round(size * fraction) for size in (free.expected, free.low, free.high)))
        for fraction in (server.memory_fraction, 1 - server.memory_fraction)
    )
    cache = _beside_states(setup, remaining(static, (loaded,)))
    late = (step,) if graphs is None else (step, graphs)
    checks = (
        StartupCheck("load", remaining(total, (context, loaded))),
        StartupCheck("blocks", cache.less(block_bytes(setup))),
        StartupCheck("rest" if graphs is None else "graphs", remaining(rest, late)),
    )
    request = _request_bytes(setup, server)
    return served(
        setup, server, total, taken=static.expected, terms=(loaded,), beside=(context, *late), cache=cache, checks=checks, request=request
    )


def _beside_states(setup: Setup, rest: ByteRange) -> ByteRange:
    """Return what is left for keys and values where layers with a state have their own pool."""
    states = any(kept[-1] for kept, _ in layer_kinds(setup.shape)) and token_bytes(setup) > 0
    return ByteRange(*(round(size / (1 + _STATES)) for size in (rest.expected, rest.low, rest.high))) if states else rest


def _request_bytes(setup: Setup, server: Server) -> int | None:
    """Return the keys and values of one request of full length; states and what leaves a window are in pools of their own."""
    if server.length is None:
        return None
    fraction, length = inference.heads_fraction(setup) / setup.layout.pipeline, server.length
    kinds = layer_kinds(setup.shape)
    kept = (many * (cache * setup.cache_bytes + more) * min(length, window or length) for (cache, more, window, _), many in kinds)
    return round(fraction * sum(kept))


def graph_sizes(largest: int) -> int:
    """Return for how many sizes of batches up to `largest` graphs are captured, itself included."""
    strides = (size for first, end, step in _STRIDES for size in range(first, end or largest + 1, step))
    return len({largest, *(size for size in (*_SMALL_SIZES, *strides) if size <= largest)})


def default_fraction(card: int, batched: int, graphs: int, cards: int) -> float:
    """Return the memory fraction on a card of so many bytes, with CUDA graphs for `graphs` requests; a server on several `cards`."""
    beside = _SLACK + max(batched, _FEWEST_TOKENS) * _PER_TOKEN + graphs * _PER_GRAPH + cards * _PER_CARD
    if card > _LARGE:
        beside = max(beside, _LEAST)
    return max(0.01, round((card - beside) / card, 3))


def _card_bytes(expected: Served, seen: Mapping[str, int], log: Mapping[str, Value]) -> int | None:
    """Return the card that explains what the log says is free beside what is loaded."""
    del seen
    free, *held = (log.get(f"log.{name}") for name in ("free_bytes", "weights_bytes", "k_bytes", "v_bytes"))
    if not isinstance(free, int) or not isinstance(held[0], int):
        return None
    return free + sum(size for size in held if isinstance(size, int)) + expected.beside[0].bytes


ENGINE = ServerEngine(
    start=start,
    card_bytes=_card_bytes,
    default_fraction=default_fraction,
)
