"""vLLM: its cache is fraction x card - weights - what the profile run takes, at its peak and outside of torch.

Source: vllm/v1/worker/gpu_worker.py, determine_available_memory. Weights are loaded without a look at the fraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.event import Value
from oomdoctor.case.serving import ByteRange, Served, Server, StartupCheck
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.memory import known_format
from oomdoctor.memory.model.weights import HALF
from oomdoctor.memory.servers.adapters import adapter_bytes
from oomdoctor.memory.servers.engine import ServerEngine, ShareQuery
from oomdoctor.memory.servers.media import TriedMedia, tried_media
from oomdoctor.memory.servers.pages import request_bytes, states_bytes
from oomdoctor.memory.servers.startup_budget import (
    block_bytes,
    cuda_context,
    cuda_graphs,
    is_plain_text,
    loaded_weights,
    one_step,
    remaining,
    served,
    workspace,
)
from oomdoctor.memory.term import term
from oomdoctor.units import GIB

_OUTSIDE_LOW, _OUTSIDE_MORE, _OUTSIDE_MORE_BETWEEN = 0.3, 0.2 * GIB, 0.4 * GIB
"""How little of what the rules say grows outside of torch, and how much more it may be, on one card and on several: 0.03 to 0.35 GiB are
printed of one, and 0.2 to 0.95 or 2.1 to 2.2 of several."""
_LOGIT_LOW, _LOGIT_HIGH = 0.75, 1.3
_ENCODER_LOW, _ENCODER_HIGH = 0.6, 1.4
_SAMPLER_LOW, _SAMPLER_HIGH = 0.88, 1.06
"""How far the sampler of a text model is from what is counted before 0.20, where every version prints it: 0.89 to 1.04 of it."""
_AROUND = 26
"""Layers that one CUDA graph costs whatever its layers: vLLM 0.19 prints 0.9 GiB for 32 layers and 51 sizes and 1.6 for 80 ("Graph
capturing finished"), with a piecewise and a full graph of each size."""
_GRAPHS_HIGH, _EXPERT_GRAPHS_HIGH = 1.2, 2.0
"""How much more graphs may be than is counted: those of experts print up to twice as much."""
_GRAPHS_LEFT = 0.3 * GIB
"""And what they may leave beside it however few they are."""
_SMALL_GRAPHS, _DENSE_UNTIL, _STRIDES = 3, 256, (8, 16)
"""Sizes 1, 2 and 4, then every eighth, from 256 on every sixteenth (vllm/config/vllm.py, _set_cudagraph_sizes)."""
_PADDED_HEAD = 256
"""The width of a head of latent attention in a cache that keeps whole heads: vLLM 0.5.4, models/deepseek_v2.py."""

_FRACTION = 0.9
"""The memory fraction of a server that takes the same of every card (vllm/config/cache.py before 0.20)."""


def start(setup: Setup, server: Server, total: int) -> Served:
    """Return what vLLM makes of a card of `total` bytes, with its checks in the order in which a start meets them."""
    context, work = cuda_context(setup), profiled_step(setup, server)
    outside, profile = _outside_torch(setup, server), server.profile
    loaded = _more(loaded_weights(setup, server), adapter_bytes(setup, server))
    graphs = _cuda_graphs(setup, server)
    inside = (graphs,) if graphs is not None and server.graphs_inside else ()
    late = (graphs,) if graphs is not None and not server.graphs_inside else ()
    taken = int(total * server.memory_fraction)
    terms = (loaded, outside, work, *inside, *((context,) if profile.context_inside else ()))
    beside = (*(() if profile.context_inside else (context,)), *late)
    cached = setup if profile.caches_latent else _with_whole_heads(setup)
    cache, request, told = remaining(taken, terms), request_bytes(cached, server), _told_cache(cached, server)
    if told is not None:
        cache, taken = ByteRange(told, told, told), sum(term.bytes for term in terms) + told

    def checks() -> Iterator[StartupCheck]:
        if profile.checks_free:
            yield StartupCheck("start", remaining(total - int(total * server.memory_fraction), (context,)))
        yield StartupCheck("load", remaining(total, (context, _as_loaded(setup, server, loaded))))
        yield StartupCheck("sampler" if work.name == "sampler" else "profile", remaining(total, (context, loaded, outside, work)))
        yield StartupCheck("blocks", cache.less(block_bytes(cached)))
        if request is not None:
            yield StartupCheck("request", cache.less(request))
        if profile.checks_states and server.graphs and (states := states_bytes(cached, server)):
            yield StartupCheck("states", cache.less(states))
        if told is not None:
            yield StartupCheck("rest", remaining(total - told, (*terms, *beside)))
        elif late:
            yield StartupCheck("graphs", remaining(total - taken, beside))

    every = tuple(checks())
    made = served(setup, server, total, taken=taken, terms=terms, beside=beside, cache=cache, checks=every, cached=cached, request=request)
    return replace(made, request_is_open=request is None)


def profiled_step(setup: Setup, server: Server) -> Term:
    """Return the peak of the profile run: pictures in their encoder, the layers for all tokens of a step, or the sampler.

    The sampler has a row of scores for each request. Beside the scores are the hidden states that go in and come out, and the workspace
    of experts where it stays; beside all but the encoder is what is alive of the pictures.
    """
    media = tried_media(setup, server)
    peaks = [_more(one_step(setup, server), media.kept), _more(_sampler(setup, server, media), media.kept)]
    if media.encoder:
        basis = "pictures or a video of the largest size in the encoder: vllm/v1/worker/gpu_model_runner.py, profile_run"
        peaks.append(term("encoder", media.encoder, basis, low=_ENCODER_LOW, high=_ENCODER_HIGH))
    larger = max(peaks, key=lambda term: term.bytes)
    return replace(larger, low=max(term.low for term in peaks), high=max(term.high for term in peaks))


def _sampler(setup: Setup, server: Server, media: TriedMedia) -> Term:
    """Return the scores of the requests of the profile run, and what is beside them."""
    shape, profile = setup.shape, server.profile
    each, requests = profile.logit_bytes, min(server.requests, server.batched, media.requests or server.requests)
    basis = f"{each:g} bytes x vocabulary x {requests} requests: vllm/v1/worker/gpu_model_runner.py, _dummy_sampler_run"
    kept = 2 * shape.hidden + (workspace(setup) if profile.keeps_workspace else 0)
    size = each * shape.vocab * requests + HALF * kept * server.batched
    exact = profile.exact_sampler and is_plain_text(shape) and not setup.weights.unpacks
    low, high = (_SAMPLER_LOW, _SAMPLER_HIGH) if exact else (_LOGIT_LOW, _LOGIT_HIGH)
    return term("sampler", size, basis, low=low, high=high)


def _as_loaded(setup: Setup, server: Server, loaded: Term) -> Term:
    """Return the weights at their peak: 16 bit, where the server packs them itself once all of them are there."""
    if not (server.packs and server.profile.loads_wide):
        return loaded
    return loaded_weights(replace(setup, weights=known_format("bf16")), server)


def _more(part: Term, size: int) -> Term:
    """Return a term with so many bytes more, whatever its range."""
    return replace(part, bytes=part.bytes + size, low=part.low + size, high=part.high + size)


def _told_cache(setup: Setup, server: Server) -> int | None:
    """Return the cache that the server is told to have: bytes, or blocks."""
    if server.cache_told is not None or server.blocks_told is None:
        return server.cache_told
    return server.blocks_told * block_bytes(setup)


def _cuda_graphs(setup: Setup, server: Server) -> Term | None:
    each, high = server.profile.graph_layer, _GRAPHS_HIGH if setup.shape.experts is None else _EXPERT_GRAPHS_HIGH
    graphs = cuda_graphs(setup, server, _graph_sizes(server), each, _AROUND * each)
    return None if graphs is None else replace(graphs, high=round(max(high * graphs.bytes, graphs.bytes + _GRAPHS_LEFT)))


def _graph_sizes(server: Server) -> int:
    """Return for how many sizes of batches graphs are captured."""
    profile = server.profile
    largest = min(profile.graph_requests * server.requests, profile.largest_graph)
    dense, sparse = (min(largest, _DENSE_UNTIL - 1) // _STRIDES[0], max(0, largest - _DENSE_UNTIL + _STRIDES[1]) // _STRIDES[1])
    return min(_SMALL_GRAPHS, largest.bit_length()) + dense + sparse


def _outside_torch(setup: Setup, server: Server) -> Term:
    basis = "what grows outside of torch until the profile run ends: vLLM prints it as non_torch_memory"
    made = term("outside torch", server.profile.outside, basis, low=_OUTSIDE_LOW)
    more = _OUTSIDE_MORE if setup.layout.tensor * setup.layout.pipeline == 1 else _OUTSIDE_MORE_BETWEEN
    return replace(made, high=round(made.bytes + more))


def _with_whole_heads(setup: Setup) -> Setup:
    """Return the setup as a cache sees it that keeps whole heads of latent attention, each as wide as a kernel takes them."""
    shape = setup.shape
    if shape.latent is None:
        return setup
    return replace(setup, shape=replace(shape, latent=None, head=_PADDED_HEAD, kv_heads=shape.heads))


def _default_fraction(query: ShareQuery) -> float:
    del query
    return _FRACTION


def _card_bytes(expected: Served, seen: Mapping[str, int], log: Mapping[str, Value]) -> int | None:
    """Return the card that explains the cache that the log shows: the cache is what the fraction leaves."""
    del log
    if "kv cache" not in seen:
        return None
    return round((sum(seen.get(term.name, term.bytes) for term in expected.terms) + seen["kv cache"]) / expected.server.memory_fraction)


ENGINE = ServerEngine(
    start=start,
    card_bytes=_card_bytes,
    default_fraction=_default_fraction,
    limits_requests=True,
)
