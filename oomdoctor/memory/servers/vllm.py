"""vLLM: its cache is fraction x GPU - weights - what the profile run uses, at its peak and outside torch.

Source: vllm/v1/worker/gpu_worker.py, determine_available_memory. Weights are loaded without checking the fraction.
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
"""How much less than the rules say may grow outside torch, and how much more, on one GPU and on several: 0.03 to 0.35 GiB is printed for
one, and 0.2 to 0.95 or 2.1 to 2.2 for several."""
_LOGIT_LOW, _LOGIT_HIGH = 0.75, 1.3
_ENCODER_LOW, _ENCODER_HIGH = 0.6, 1.4
_SAMPLER_LOW, _SAMPLER_HIGH = 0.88, 1.06
"""How far the sampler of a text model is from what is counted before 0.20, where every version prints it: 0.89 to 1.04 of it."""
_AROUND = 26
"""The fixed cost of one CUDA graph, in layers: vLLM 0.19 prints 0.9 GiB for 32 layers and 51 sizes and 1.6 for 80 ("Graph capturing
finished"), with a piecewise and a full graph of each size."""
_GRAPHS_HIGH, _EXPERT_GRAPHS_HIGH = 1.2, 2.0
"""How much more graphs may use than is counted: those of experts print up to twice as much."""
_GRAPHS_LEFT = 0.3 * GIB
"""And what they may leave in addition, however few they are."""
_SMALL_GRAPHS, _DENSE_UNTIL, _STRIDES = 3, 256, (8, 16)
"""Sizes 1, 2 and 4, then every eighth, from 256 every sixteenth (vllm/config/vllm.py, _set_cudagraph_sizes)."""
_PADDED_HEAD = 256
"""The width of a latent attention head in a cache that keeps whole heads: vLLM 0.5.4, models/deepseek_v2.py."""

_FRACTION = 0.9
"""The memory fraction of a server that uses the same on every GPU (vllm/config/cache.py before 0.20)."""


def start(setup: Setup, server: Server, total: int) -> Served:
    """Return how vLLM uses a GPU of `total` bytes, with its checks in the order in which startup reaches them."""
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
    cache, request, told = remaining(taken, terms), request_bytes(cached, server), _configured_cache(cached, server)
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
    """Return the peak of the profile run: images in their encoder, the layers for all tokens of a step, or the sampler.

    The sampler has a row of logits per request. In addition to the logits there are its input and output hidden states, and the workspace
    of experts if it stays; in addition to all but the encoder, there is what is live of the images.
    """
    media = tried_media(setup, server)
    peaks = [_more(one_step(setup, server), media.kept), _more(_sampler(setup, server, media), media.kept)]
    if media.encoder:
        basis = "images or a video of the largest size in the encoder: vllm/v1/worker/gpu_model_runner.py, profile_run"
        peaks.append(term("encoder", media.encoder, basis, low=_ENCODER_LOW, high=_ENCODER_HIGH))
    larger = max(peaks, key=lambda term: term.bytes)
    return replace(larger, low=max(term.low for term in peaks), high=max(term.high for term in peaks))


def _sampler(setup: Setup, server: Server, media: TriedMedia) -> Term:
    """Return the logits of the requests in the profile run, and what exists alongside them."""
    shape, profile = setup.shape, server.profile
    each, requests = profile.logit_bytes, min(server.requests, server.batched, media.requests or server.requests)
    basis = f"{each:g} bytes x vocabulary x {requests} requests: vllm/v1/worker/gpu_model_runner.py, _dummy_sampler_run"
    kept = 2 * shape.hidden + (workspace(setup) if profile.keeps_workspace else 0)
    size = each * shape.vocab * requests + HALF * kept * server.batched
    exact = profile.exact_sampler and is_plain_text(shape) and not setup.weights.unpacks
    low, high = (_SAMPLER_LOW, _SAMPLER_HIGH) if exact else (_LOGIT_LOW, _LOGIT_HIGH)
    return term("sampler", size, basis, low=low, high=high)


def _as_loaded(setup: Setup, server: Server, loaded: Term) -> Term:
    """Return the weights at their peak: 16 bit, if the server itself packs them once all of them are loaded."""
    if not (server.packs and server.profile.loads_wide):
        return loaded
    return loaded_weights(replace(setup, weights=known_format("bf16")), server)


def _more(part: Term, size: int) -> Term:
    """Return a term with this many bytes more, whatever its range."""
    return replace(part, bytes=part.bytes + size, low=part.low + size, high=part.high + size)


def _configured_cache(setup: Setup, server: Server) -> int | None:
    """Return the cache size given to the server: bytes, or blocks."""
    if server.cache_told is not None or server.blocks_told is None:
        return server.cache_told
    return server.blocks_told * block_bytes(setup)


def _cuda_graphs(setup: Setup, server: Server) -> Term | None:
    each, high = server.profile.graph_layer, _GRAPHS_HIGH if setup.shape.experts is None else _EXPERT_GRAPHS_HIGH
    graphs = cuda_graphs(setup, server, _graph_sizes(server), each, _AROUND * each)
    return None if graphs is None else replace(graphs, high=round(max(high * graphs.bytes, graphs.bytes + _GRAPHS_LEFT)))


def _graph_sizes(server: Server) -> int:
    """Return the number of batch sizes for which graphs are captured."""
    profile = server.profile
    largest = min(profile.graph_requests * server.requests, profile.largest_graph)
    dense, sparse = (min(largest, _DENSE_UNTIL - 1) // _STRIDES[0], max(0, largest - _DENSE_UNTIL + _STRIDES[1]) // _STRIDES[1])
    return min(_SMALL_GRAPHS, largest.bit_length()) + dense + sparse


def _outside_torch(setup: Setup, server: Server) -> Term:
    basis = "growth outside torch until the profiling run ends: vLLM prints it as non_torch_memory"
    made = term("outside torch", server.profile.outside, basis, low=_OUTSIDE_LOW)
    more = _OUTSIDE_MORE if setup.layout.tensor * setup.layout.pipeline == 1 else _OUTSIDE_MORE_BETWEEN
    return replace(made, high=round(made.bytes + more))


def _with_whole_heads(setup: Setup) -> Setup:
    """Return the setup as seen by a cache that keeps whole latent attention heads, each as wide as a kernel requires."""
    shape = setup.shape
    if shape.latent is None:
        return setup
    return replace(setup, shape=replace(shape, latent=None, head=_PADDED_HEAD, kv_heads=shape.heads))


def _default_fraction(query: ShareQuery) -> float:
    del query
    return _FRACTION


def _card_bytes(expected: Served, seen: Mapping[str, int], log: Mapping[str, Value]) -> int | None:
    """Return the GPU size that explains the cache in the log: the cache is what the fraction leaves."""
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
