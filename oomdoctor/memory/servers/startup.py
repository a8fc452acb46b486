"""Servers that take a share of the card and fill what is left of it with KV cache: vLLM and SGLang.

vLLM: share x card - weights - what the profile run takes, at its peak and outside of torch (vllm/v1/worker/gpu_worker.py,
determine_available_memory). SGLang: share x what is free at the start - weights; activations and CUDA graphs must do with the
rest (sglang/srt/mem_cache/kv_cache_configurator.py, _profile_available_bytes).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

from msgspec.structs import replace

from oomdoctor.case.estimate import Phase, Term
from oomdoctor.case.serving import ByteRange, Served, Server, StartupCheck
from oomdoctor.case.setup import Setup
from oomdoctor.memory import inference
from oomdoctor.memory.activations import width
from oomdoctor.memory.model import weights
from oomdoctor.memory.term import term
from oomdoctor.units import GIB, MIB

_BLOCK = 16
"""Tokens of a block of the cache: CacheConfig.block_size of vLLM. A cache without one is none."""
_CONTEXT = 0.35 * GIB
"""CUDA context before anything is loaded: vLLM's "Free memory on device" shows 0.07 to 0.53 GiB of cards of 22 to 79 GiB missing."""
_BETWEEN = 0.2 * GIB
"""NCCL and custom all-reduce beside it, for each card that takes part: SGLang's "Init torch distributed ends" shows 1.8 to 2.0 GiB with
the context on eight cards; four cards of 24 GiB start with 0.92 of them taken."""
_MACHINE = 8
"""More cards than a machine has talk through the network, with few buffers of their own."""
_LATER = 0.15 * GIB
"""What grows outside of torch from there to the end of the profile run: vLLM prints 0.05 to 0.33 GiB as non_torch_memory."""
_LATER_BETWEEN = 0.4 * GIB
"""The same on each of several cards: 0.3 to 0.95 GiB."""
_STEP = 1.1
"""What vLLM's profile shows of one step, as a multiple of one layer: 1.1 for 2,048 and for 32,768 tokens."""
_LOGIT, _LOGIT_LOW, _LOGIT_HIGH = 24, 10, 40
"""Bytes of one logit while the sampler warms up: 16 bit, fp32 and probabilities with FlashInfer, and with PyTorch's sort the values,
their places and copies of both. vLLM's profile shows 38 to 41 for Llama 3 and Qwen 2.5 (issue 10511 and others), newer ones 10."""
_ATTENTION = 0.4 * GIB
"""SGLang's buffers for attention, which it makes beside the share: SGLANG_FLASHINFER_WORKSPACE_SIZE is 384 MiB (sglang/srt/environ.py)."""
_GRAPH = {"vllm": 0.27 * MIB, "sglang": 0.5 * MIB}
"""Of one CUDA graph and layer: vLLM prints 0.5 to 0.7 GiB for 32 layers and 67 sizes ("Graph capturing finished"), SGLang 0.9 GiB for
61 layers and 13 sizes, and less where there are more of them."""
_GRAPHS = 512
"""The largest batch with a CUDA graph, at most (vllm/config, max_cudagraph_capture_size)."""


def serve(setup: Setup, server: Server, total: int) -> Served:
    """What a server makes of a card of `total` bytes for the model of a setup."""
    return vllm(setup, server, total) if server.program == "vllm" else sglang(setup, server, total)


def vllm(setup: Setup, server: Server, total: int) -> Served:
    """vLLM: its own order of checks; weights are loaded without a look at the share."""
    context, graphs, work = _context(setup), _graphs(setup, server), working_set(setup, server)
    loaded, outside = _loaded(setup, server), _outside(setup)
    inside = (graphs,) if graphs is not None and server.graphs_inside else ()
    late = (graphs,) if graphs is not None and not server.graphs_inside else ()
    taken = int(total * server.share)
    terms = (loaded, outside, work, *inside)
    cache, token, request = _left(taken, terms), _token(setup), _request(setup, server)

    def checks() -> Iterator[StartupCheck]:
        yield StartupCheck("start", _left(total - taken, (context,)))
        yield StartupCheck("load", _left(total, (context, loaded)))
        yield StartupCheck("sampler" if work.name == "sampler" else "profile", _left(total, (context, loaded, outside, work)))
        yield StartupCheck("blocks", cache.less(round(_BLOCK * token)))
        if request is not None:
            yield StartupCheck("request", cache.less(request))
        if late:
            yield StartupCheck("graphs", _left(total - taken, (context, *late)))

    return _served(setup, server, total, taken, terms, (context, *late), cache, tuple(checks()))


def sglang(setup: Setup, server: Server, total: int) -> Served:
    """SGLang: weights and cache in the share, everything else in the rest; no length of a request is refused at the start."""
    context, graphs, work = _context(setup), _graphs(setup, server), working_set(setup, server)
    loaded = _loaded(setup, server)
    free = _left(total, (context,))
    static, rest = (
        ByteRange(*(round(size * share) for size in (free.expected, free.low, free.high))) for share in (server.share, 1 - server.share)
    )
    cache = _minus(static, (loaded,))
    late = (work, graphs) if graphs is not None else (work,)
    checks = (
        StartupCheck("load", _left(total, (context, loaded))),
        StartupCheck("blocks", cache.less(round(_BLOCK * _token(setup)))),
        StartupCheck("graphs" if graphs is not None else "rest", _minus(rest, late)),
    )
    return _served(setup, server, total, static.expected, (loaded,), (context, *late), cache, checks)


def _served(
    setup: Setup,
    server: Server,
    total: int,
    taken: int,
    terms: tuple[Term, ...],
    beside: tuple[Term, ...],
    cache: ByteRange,
    checks: tuple[StartupCheck, ...],
) -> Served:
    return Served(
        setup=setup,
        server=server,
        total=total,
        taken=taken,
        terms=terms,
        beside=beside,
        cache=cache,
        token=_token(setup),
        request=_request(setup, server),
        checks=checks,
        phases=tuple(_phases(terms, beside, cache)),
    )


def _phases(terms: tuple[Term, ...], beside: tuple[Term, ...], cache: ByteRange) -> Iterator[Phase]:
    """The moments of a start: weights alone, the profile run, and the server with its cache."""
    loaded, context = terms[0], beside[0]
    work = tuple(one for one in (*terms, *beside) if one.name in ("outside torch", *_WORK))
    yield Phase(name="load", terms=(loaded, context))
    yield Phase(name="profile", terms=(loaded, *work, context))
    filled = Term(
        name="kv cache", bytes=max(0, cache.expected), low=max(0, cache.low), high=max(0, cache.high), basis="what the share leaves"
    )
    yield Phase(name="serving", terms=(*terms, filled, *beside))


_WORK = ("working set", "sampler")


def working_set(setup: Setup, server: Server) -> Term:
    """The peak of one step: the layers for all its tokens, or the sampler for one row of scores for each request."""
    shape = setup.shape
    tokens = server.batched * weights.HALF * (3 * width(shape) + 2 * shape.hidden) / setup.layout.tensor
    buffers = 0.0 if server.program == "vllm" else _ATTENTION
    basis = f"a step of {server.batched} tokens: gate and up, their product, and two hidden states: vllm/model_executor/models/llama.py"
    step = term("working set", tokens * _STEP + buffers, basis, low=0.7, high=2.0 if shape.experts else 1.4)
    if server.program != "vllm":
        return step
    logits = shape.vocab * min(server.requests, server.batched)
    per_logit = f"{_LOGIT_LOW} to {_LOGIT_HIGH} bytes x vocabulary x {server.requests} requests"
    basis = f"{per_logit}: vllm/v1/worker/gpu_model_runner.py, _dummy_sampler_run"
    sampler = term("sampler", logits * _LOGIT, basis, low=_LOGIT_LOW / _LOGIT, high=_LOGIT_HIGH / _LOGIT)
    larger = max(step, sampler, key=lambda one: one.bytes)
    return replace(larger, low=max(step.low, sampler.low), high=max(step.high, sampler.high))


def _loaded(setup: Setup, server: Server) -> Term:
    """The weights that stay on the card."""
    whole = weights.weights(setup)
    kept = tuple(max(0, size - server.offload) for size in (whole.bytes, whole.low, whole.high))
    return Term(name="weights", bytes=kept[0], low=kept[1], high=kept[2], basis=whole.basis)


def _outside(setup: Setup) -> Term:
    several = _several(setup)
    basis = "what grows outside of torch until the profile run ends: vLLM prints it as non_torch_memory"
    return term("outside torch", _LATER_BETWEEN if several else _LATER, basis, low=0.2, high=3.0)


def _context(setup: Setup) -> Term:
    cards = min(setup.layout.tensor * setup.layout.pipeline, _MACHINE)
    basis = "CUDA context and NCCL before the first weight: vLLM's and SGLang's logs of free memory at the start"
    return term("context", _CONTEXT + (_BETWEEN * cards if cards > 1 else 0), basis, low=0.3, high=1.6)


def _graphs(setup: Setup, server: Server) -> Term | None:
    if not server.graphs:
        return None
    largest = min(2 * server.requests, _GRAPHS) if server.program == "vllm" else server.requests
    number = 3 + largest // 8
    size = setup.shape.layers / setup.layout.pipeline * number * _GRAPH[server.program]
    return term("cuda graphs", size, f"{number} sizes of batches x layers, as the servers print it", low=0.2, high=2.5)


def _several(setup: Setup) -> bool:
    return setup.layout.tensor * setup.layout.pipeline > 1


def _token(setup: Setup) -> float:
    """Bytes of one token in the cache of one card."""
    return inference.cache_per_token(setup) * inference.heads_share(setup) / setup.layout.pipeline


def _request(setup: Setup, server: Server) -> int | None:
    """The cache of one request of full length: a window keeps what one step adds to it as well (vllm SlidingWindowSpec)."""
    if server.length is None:
        return None
    blocks = -(-server.length // _BLOCK) * _BLOCK
    shape = setup.shape
    windowed = 0.0 if shape.window is None else 1.0 if shape.windowed_layers is None else shape.windowed_layers / shape.layers
    short = min(blocks, (shape.window or 0) + server.batched)
    return round(_token(setup) * ((1 - windowed) * blocks + windowed * short))


def _left(room: int, terms: tuple[Term, ...]) -> ByteRange:
    return _minus(ByteRange(room, room, room), terms)


def _minus(room: ByteRange, terms: tuple[Term, ...]) -> ByteRange:
    """What is left of a room; what is unknown of one term says nothing of another, so the deviations add like lengths at right angles."""
    left = room.expected - sum(one.bytes for one in terms)
    down = hypot(room.expected - room.low, *(one.high - one.bytes for one in terms))
    up = hypot(room.high - room.expected, *(one.bytes - one.low for one in terms))
    return ByteRange(left, round(left - down), round(left + up))
