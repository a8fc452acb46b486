"""How SGLang divides what its share leaves: tokens of layers that keep all of them, windows, and states.

Sources: sglang/srt/model_executor/pool_configurator.py (DefaultPoolConfigurator, HybridSWAPoolConfigurator, DSV4PoolConfigurator) and
sglang/srt/mem_cache/kv_cache_configurator.py (_handle_max_mamba_cache, resolve_max_num_reqs), both 0.5.23.
"""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.serving import ByteRange, Server
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import CompressedKeys
from oomdoctor.memory import inference
from oomdoctor.memory.servers.pages import layer_kinds

_FEWEST_RUNNING, _MOST_RUNNING, _LENGTHS_RUNNING = 2048, 4096, 512
"""Requests that have a row of slots: a number per full-length request that fits, between the first two values."""
_PLACE, _PLACES_MORE = 4, 4
"""Bytes per token slot, and slots in addition to those of the longest request."""
_PAGE, _ALIGNED, _SCALES, _FP32 = 256, 576, 8, 4
"""Tokens per page of compressed keys, the multiple to which its bytes are rounded up, bytes of a key's scales, and of a state value."""
_OVERLAPS, _RING, _STATES_OF_OVERLAP, _STATES = 4, 8, 4, 2
"""The ratio whose compression windows overlap, the rows of its ring of states, and the widths of a state there and elsewhere."""
_RUNNING, _RUNNING_DRAFTED = 256, 48
"""Default requests of a model with compressed keys: deepseek_v4_hook.py, and speculative_hook.py of SGLang."""
_STATES_OF_REQUEST = 3
"""States that a request has at a time: its own and those of prefixes (MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO)."""
_EVICTED_EVERY, _TAILS, _STEPS = 128, 4, 2
"""Tokens after which a window is evicted (SGLANG_SWA_EVICTION_INTERVAL), prefixes kept per request, prefills in flight."""


def pool_token(setup: Setup, server: Server) -> float:
    """Return the bytes per token of the cache (max_total_num_tokens) on one GPU, in all pools that grow with it."""
    if layers := _compressed(setup):
        return _compressed_token(layers, server) * _drafted(server, len(layers)) / setup.layout.pipeline
    ratio, kept = server.pools.window_tokens, 0.0
    for (cache, indexed, window, _), many in layer_kinds(setup.shape):
        kept += many * (cache * setup.cache_bytes + indexed) * (1 if window is None or ratio is None else ratio)
    drafted = _drafted(server, setup.shape.layers) if server.profile.drafts_inside else 1
    return kept * inference.heads_fraction(setup) * drafted / setup.layout.pipeline


def for_tokens(setup: Setup, server: Server, rest: ByteRange) -> ByteRange:
    """Return how much of the rest of the share is for tokens, minus what is for states, and no more than requested."""
    token, slots = pool_token(setup, server), server.pools.state_slots
    state = _state(setup)
    if layers := _compressed(setup):
        rest = rest.less(round(_by_requests(layers, server) / setup.layout.pipeline))
    elif state and slots is not None:
        rest = rest.less(round((slots + 1) * state))
    elif state and token:
        rest = ByteRange(*(round(size / (1 + server.pools.state_bytes)) for size in _sizes(rest)))
    most = server.pools.tokens
    return rest if most is None else ByteRange(*(min(size, round(most * token)) for size in _sizes(rest)))


def request_table(setup: Setup, server: Server, cache: int) -> int:
    """Return the bytes of the table that maps each token of each request to its location, with a cache of this many bytes.

    0 if the longest request is unknown, or nothing is kept of tokens.
    """
    token = pool_token(setup, server)
    if server.length is None or not token:
        return 0
    cache = max(0, cache)
    tokens = cache / token
    running = max(min(int(tokens / server.length * _LENGTHS_RUNNING), _MOST_RUNNING), _FEWEST_RUNNING)
    most = [server.pools.running or running, int(tokens / 2)]
    if _compressed(setup):
        most.append(_running(server))
    elif state := _state(setup):
        slots = server.pools.state_slots
        most.append(int(cache * server.pools.state_bytes / state / _STATES_OF_REQUEST) if slots is None else slots)
    return _PLACE * (min(most) + 1) * (server.length + _PLACES_MORE)


def _state(setup: Setup) -> float:
    """Return the bytes of the states of one request on one GPU."""
    states = sum(many * kept[-1] for kept, many in layer_kinds(setup.shape))
    return states * setup.layout.replicas / (setup.layout.tensor * setup.layout.pipeline)


def _running(server: Server) -> int:
    """Return the number of requests for which a model with compressed keys has states and windows."""
    return server.pools.running or (_RUNNING_DRAFTED if server.drafted else _RUNNING)


def _sizes(sizes: ByteRange) -> tuple[int, int, int]:
    return sizes.expected, sizes.low, sizes.high


def _drafted(server: Server, layers: int) -> float:
    """Return how much larger the layer that drafts tokens makes the cache of a token: it keeps what one of the others does."""
    return (layers + 1) / layers if server.drafted else 1.0


def _compressed(setup: Setup) -> tuple[CompressedKeys, ...]:
    return tuple(layer.compression for layer in setup.shape.each if layer.compression is not None)


class _Widths(Struct, frozen=True):
    """Bytes of compressed keys, all layers together."""

    window: float
    """Per token in the windows, including the states of overlapping compression."""
    keys: float
    """Per token in compressed keys and those of the indexer."""
    states: int
    """Per row of the other states."""
    widest: int
    """The maximum number of tokens that share a key, and so the rows of their states."""


def _widths(layers: tuple[CompressedKeys, ...], *, ring_of: int) -> _Widths:
    """Return the widths if windows have a ring of states for this many of their tokens."""
    window, keys, states = 0.0, 0.0, 0
    for layer in layers:
        window += _paged(layer, _PAGE)
        if layer.ratio:
            keys += _paged(layer, max(1, _PAGE // layer.ratio)) / layer.ratio
        if layer.ratio == _OVERLAPS:
            window += _RING / ring_of * _STATES_OF_OVERLAP * (layer.head + layer.index) * _FP32
        elif layer.ratio:
            states += _STATES * layer.head * _FP32
        keys += (layer.index + _FP32) / layer.ratio if layer.index else 0
    return _Widths(window, keys, states, max((layer.ratio for layer in layers), default=0))


def _paged(layer: CompressedKeys, tokens: int) -> float:
    """Return the bytes of a key in a page of this many: 8 bit, its rotary part in 16."""
    page = tokens * (layer.head + layer.rope + _SCALES)
    return -(-page // _ALIGNED) * _ALIGNED / tokens


def _compressed_token(layers: tuple[CompressedKeys, ...], server: Server) -> float:
    ratio = server.pools.window_tokens
    widths = _widths(layers, ring_of=layers[0].window or _PAGE)
    if ratio is None:
        return widths.keys
    rows = 0 if server.profile.states_by_request else widths.widest / (layers[0].window or widths.widest or 1)
    return widths.keys + ratio * (widths.window + rows * widths.states)


def _by_requests(layers: tuple[CompressedKeys, ...], server: Server) -> float:
    """Return the bytes of the pools that grow with requests and not with tokens."""
    running, window, size = _running(server), layers[0].window, 0.0
    widths = _widths(layers, ring_of=_PAGE)
    if server.profile.states_by_request:
        ring = widths.widest * (2 if server.drafted else 1)
        size += (running + 2) * ring * widths.states
    if server.pools.window_tokens is None:
        each = window + _EVICTED_EVERY * max(1, server.drafted) + 2 * _PAGE
        tokens = running * (each + _TAILS * (window + _PAGE)) + _STEPS * server.batched + _PAGE
        size += tokens * widths.window * _drafted(server, len(layers))
    return size
