"""Servers that load a model, check what is free, and give part of it to the cache: TGI, LMDeploy, TensorRT-LLM.

They differ in whether they run a step before they check, and in what the fraction is of; `StartupProfile` has both, and the rules have
what each version does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from oomdoctor.case.event import Value
from oomdoctor.case.serving import ByteRange, Served, Server, StartupCheck
from oomdoctor.case.setup import Setup
from oomdoctor.memory import inference
from oomdoctor.memory.servers.engine import ServerEngine, ShareQuery
from oomdoctor.memory.servers.startup_budget import (
    block_bytes,
    cuda_context,
    cuda_graphs,
    loaded_weights,
    one_step,
    remaining,
    served,
)
from oomdoctor.units import GIB, MIB

_ATTENTION = 0.25 * GIB
"""Workspaces of attention kernels, allocated once: 128 MiB of flashinfer in TGI layers/attention/flashinfer.py, plus those of cuBLAS."""
_GRAPH = 0.31 * MIB
"""Per CUDA graph and layer, as in vLLM: both capture torch layers."""


def start(setup: Setup, server: Server, total: int) -> Served:
    """Return how such a server uses a GPU of `total` bytes, with its checks in the order in which startup reaches them."""
    profile = server.profile
    context, loaded, step = cuda_context(setup), loaded_weights(setup, server), one_step(setup, server, _ATTENTION)
    graphs = cuda_graphs(setup, server, profile.graph_sizes, _GRAPH) if profile.graph_sizes else None
    terms = (loaded, *((step,) if profile.measures_step else ()), context)
    beside = (*(() if profile.measures_step else (step,)), *(() if graphs is None else (graphs,)))
    counted = round(total * profile.card_margin * (1 if profile.of_free else server.memory_fraction))
    left, fraction = remaining(counted, terms), profile.cache_margin * (server.memory_fraction if profile.of_free else 1)
    cache = _each(left, lambda size: size * fraction if size > 0 else size)
    rest = _each(left, lambda size: total - counted + max(0.0, size * (1 - fraction)))
    taken = sum(term.bytes for term in terms) + max(0, cache.expected)
    request = _request_bytes(setup, server)

    def checks() -> Iterator[StartupCheck]:
        yield StartupCheck("load", remaining(total, (context, loaded)))
        if profile.measures_step:
            yield StartupCheck("profile", remaining(total, terms))
        yield StartupCheck("blocks", cache.less(block_bytes(setup)))
        if request is not None and server.program.checks_request:
            yield StartupCheck("request", cache.less(request))
        if beside:
            yield StartupCheck("graphs" if profile.measures_step else "rest", remaining(rest, beside))

    return served(setup, server, total, taken=taken, terms=terms, beside=beside, cache=cache, checks=tuple(checks()), request=request)


def _request_bytes(setup: Setup, server: Server) -> int | None:
    """Return the cache of one full-length request on one GPU; None if that length is unknown."""
    if server.length is None:
        return None
    return round(inference.sequence_cache(setup, server.length) * inference.heads_fraction(setup) / setup.layout.pipeline)


def _each(sizes: ByteRange, change: Callable[[int], float]) -> ByteRange:
    return ByteRange(*(round(change(size)) for size in (sizes.expected, sizes.low, sizes.high)))


def _default_fraction(query: ShareQuery) -> float:
    del query
    return 1.0


def _card_bytes(expected: Served, seen: Mapping[str, int], log: Mapping[str, Value]) -> int | None:
    """Return None: these servers print neither the GPU size nor all that is used of it."""
    del expected, seen, log
    return None  # noqa: RET501 - mypy asks for it


ENGINE = ServerEngine(start=start, card_bytes=_card_bytes, default_fraction=_default_fraction, limits_requests=True)
