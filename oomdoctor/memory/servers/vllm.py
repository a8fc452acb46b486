"""vLLM: its cache is fraction x card - weights - what the profile run takes, at its peak and outside of torch.

Source: vllm/v1/worker/gpu_worker.py, determine_available_memory. Weights are loaded without a look at the fraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.event import Value
from oomdoctor.case.serving import Served, Server, StartupCheck
from oomdoctor.case.setup import Setup
from oomdoctor.memory.servers.engine import ServerEngine
from oomdoctor.memory.servers.startup_budget import (
    block_bytes,
    cuda_context,
    cuda_graphs,
    is_distributed,
    loaded_weights,
    one_step,
    remaining,
    request_bytes,
    served,
)
from oomdoctor.memory.term import term
from oomdoctor.units import GIB, MIB

_OUTSIDE = 0.15 * GIB
"""What grows outside of torch until the profile run ends: vLLM prints 0.05 to 0.33 GiB as non_torch_memory."""
_OUTSIDE_DISTRIBUTED = 0.4 * GIB
"""The same on each of several cards: 0.3 to 0.95 GiB."""
_LOGIT, _LOGIT_LOW, _LOGIT_HIGH = 24, 10, 40
"""Bytes of one logit while the sampler warms up: 16 bit, fp32 and probabilities with FlashInfer, and with PyTorch's sort the values,
their places and copies of both. vLLM's profile shows 38 to 41 for Llama 3 and Qwen 2.5 (issue 10511 and others), newer ones 10."""
_GRAPH = 0.27 * MIB
"""Of one CUDA graph and layer: vLLM prints 0.5 to 0.7 GiB for 32 layers and 67 sizes ("Graph capturing finished")."""
_LARGEST_GRAPH = 512
"""The largest batch with a CUDA graph, at most (vllm/config, max_cudagraph_capture_size)."""

_FRACTION = 0.9
"""The memory fraction of a server that takes the same of every card (vllm/config/cache.py before 0.20)."""


def start(setup: Setup, server: Server, total: int) -> Served:
    """Return what vLLM makes of a card of `total` bytes, with its checks in the order in which a start meets them."""
    context, work = cuda_context(setup), profiled_step(setup, server)
    loaded, outside = loaded_weights(setup, server), _outside_torch(setup)
    graphs = cuda_graphs(setup, server, min(2 * server.requests, _LARGEST_GRAPH), _GRAPH)
    inside = (graphs,) if graphs is not None and server.graphs_inside else ()
    late = (graphs,) if graphs is not None and not server.graphs_inside else ()
    taken = int(total * server.memory_fraction)
    terms = (loaded, outside, work, *inside)
    cache, request = remaining(taken, terms), request_bytes(setup, server)

    def checks() -> Iterator[StartupCheck]:
        yield StartupCheck("start", remaining(total - taken, (context,)))
        yield StartupCheck("load", remaining(total, (context, loaded)))
        yield StartupCheck("sampler" if work.name == "sampler" else "profile", remaining(total, (context, loaded, outside, work)))
        yield StartupCheck("blocks", cache.less(block_bytes(setup)))
        if request is not None:
            yield StartupCheck("request", cache.less(request))
        if late:
            yield StartupCheck("graphs", remaining(total - taken, (context, *late)))

    return served(setup, server, total, taken=taken, terms=terms, beside=(context, *late), cache=cache, checks=tuple(checks()))


def profiled_step(setup: Setup, server: Server) -> Term:
    """Return the peak of the profile run: the layers for all tokens of a step, or the sampler with a row of scores for each request."""
    step = one_step(setup, server)
    per_logit = f"{_LOGIT_LOW} to {_LOGIT_HIGH} bytes x vocabulary x {server.requests} requests"
    basis = f"{per_logit}: vllm/v1/worker/gpu_model_runner.py, _dummy_sampler_run"
    logits = setup.shape.vocab * min(server.requests, server.batched)
    sampler = term("sampler", logits * _LOGIT, basis, low=_LOGIT_LOW / _LOGIT, high=_LOGIT_HIGH / _LOGIT)
    larger = max(step, sampler, key=lambda term: term.bytes)
    return replace(larger, low=max(step.low, sampler.low), high=max(step.high, sampler.high))


def _outside_torch(setup: Setup) -> Term:
    basis = "what grows outside of torch until the profile run ends: vLLM prints it as non_torch_memory"
    return term("outside torch", _OUTSIDE_DISTRIBUTED if is_distributed(setup) else _OUTSIDE, basis, low=0.2, high=3.0)


def _default_fraction(card: int, batched: int, graphs: int, cards: int) -> float:
    del card, batched, graphs, cards
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
    checks_request=True,
)
