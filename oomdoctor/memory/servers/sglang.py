"""SGLang: its cache is fraction x what is free at startup - weights; activations and CUDA graphs must fit in the rest.

Source: sglang/srt/mem_cache/kv_cache_configurator.py, _profile_available_bytes. No request length is rejected at startup.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.event import Value
from oomdoctor.case.serving import ByteRange, Served, Server, StartupCheck
from oomdoctor.case.setup import Setup
from oomdoctor.memory.servers.engine import ServerEngine
from oomdoctor.memory.servers.pages import BLOCK
from oomdoctor.memory.servers.sglang_pools import for_tokens, pool_token, request_table
from oomdoctor.memory.servers.sglang_share import default_fraction
from oomdoctor.memory.servers.startup_budget import (
    cuda_context,
    cuda_graphs,
    loaded_weights,
    one_step,
    remaining,
    served,
)
from oomdoctor.memory.term import term
from oomdoctor.units import GIB, MIB

_ATTENTION = 0.4 * GIB
"""Buffers for attention, allocated outside the share: SGLANG_FLASHINFER_WORKSPACE_SIZE is 384 MiB (sglang/srt/environ.py)."""
_GRAPH = 0.4 * MIB
"""Per CUDA graph and layer: SGLang prints 0.9 GiB for 61 layers and 13 sizes, and less if there are more of them."""
_SMALL_SIZES, _STRIDES = (1, 2, 4, 8, 12), ((16, 257, 8), (272, 512, 16), (512, None, 32))
"""Batches with a CUDA graph: sglang/srt/arg_groups/cuda_graph_hook.py, generate_decode_cuda_graph_batch_sizes (0.5.23)."""
_TABLE_LOW = 0.5
"""The minimum share of the request table if the cache is smaller than expected."""


def start(setup: Setup, server: Server, total: int) -> Served:
    """Return how SGLang uses a GPU of `total` bytes, with its checks in the order in which startup reaches them."""
    counted = server if server.profile.drafts_inside else replace(server, drafted=0)
    context, loaded, step = cuda_context(setup), loaded_weights(setup, counted), one_step(setup, server, _ATTENTION)
    graphs = cuda_graphs(setup, server, graph_sizes(server.requests), _GRAPH)
    free = remaining(total, (context,))
    static, rest = (
        ByteRange(*(round(size * fraction) for size in (free.expected, free.low, free.high)))
        for fraction in (server.memory_fraction, 1 - server.memory_fraction)
    )
    token = pool_token(setup, server)
    cache = for_tokens(setup, server, remaining(static, (loaded,)))
    late = tuple(part for part in (step, graphs, _table(setup, server, cache), _draft(setup, server)) if part is not None)
    checks = (
        StartupCheck("load", remaining(total, (context, loaded))),
        StartupCheck("blocks", cache.less(round(BLOCK * token))),
        StartupCheck("rest" if graphs is None else "graphs", remaining(rest, late)),
    )
    return served(
        setup,
        server,
        total,
        taken=static.expected,
        terms=(loaded,),
        beside=(context, *late),
        cache=cache,
        checks=checks,
        token=token,
        request=None if server.length is None else round(token * server.length),
    )


def _table(setup: Setup, server: Server, cache: ByteRange) -> Term | None:
    """Return the table of the slots of all requests' tokens; None if there is none, or its size is unknown."""
    size = request_table(setup, server, cache.expected)
    basis = "requests x tokens of the longest x 4 bytes: sglang/srt/mem_cache/memory_pool.py, ReqToTokenPool"
    return term("request table", size, basis, low=_TABLE_LOW, high=1.1) if size else None


def _draft(setup: Setup, server: Server) -> Term | None:
    """Return the layer that drafts tokens, if it is loaded after the cache is created; None if it is not, or was loaded before."""
    if not server.drafted or server.profile.drafts_inside:
        return None
    loaded = loaded_weights(setup, server).bytes - loaded_weights(setup, replace(server, drafted=0)).bytes
    return term("draft", loaded, "the model's token-proposal layer", low=0.8, high=1.5)


def graph_sizes(largest: int) -> int:
    """Return the number of batch sizes up to `largest`, inclusive, for which graphs are captured."""
    strides = (size for first, end, step in _STRIDES for size in range(first, end or largest + 1, step))
    return len({largest, *(size for size in (*_SMALL_SIZES, *strides) if size <= largest)})


def _card_bytes(expected: Served, seen: Mapping[str, int], log: Mapping[str, Value]) -> int | None:
    """Return the GPU size that explains what the log reports as free in addition to what is loaded."""
    del seen
    before = log.get("log.initial_free_bytes")
    if isinstance(before, int):
        return before + expected.beside[0].bytes
    free, *held = (log.get(f"log.{name}") for name in ("free_bytes", "weights_bytes", "k_bytes", "v_bytes"))
    if not isinstance(free, int) or not isinstance(held[0], int):
        return None
    return free + sum(size for size in held if isinstance(size, int)) + expected.beside[0].bytes


ENGINE = ServerEngine(
    start=start,
    card_bytes=_card_bytes,
    default_fraction=default_fraction,
)
