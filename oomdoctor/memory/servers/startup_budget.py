"""The code shared by all servers that reserve a fraction of the GPU and fill what is left of it with KV cache."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

from msgspec.structs import replace

from oomdoctor.case.estimate import Phase, Term
from oomdoctor.case.serving import ByteRange, Served, Server, StartupCheck
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.memory import inference
from oomdoctor.memory.model import weights
from oomdoctor.memory.model.parameters import routed
from oomdoctor.memory.model.spread import beside_a_share
from oomdoctor.memory.servers.pages import BLOCK, block_token, layer_kinds
from oomdoctor.memory.term import term
from oomdoctor.units import GIB

_CONTEXT = 0.35 * GIB
"""CUDA context before anything is loaded: vLLM's "Free memory on device" shows 0.07 to 0.53 GiB missing on GPUs of 22 to 79 GiB."""
_BETWEEN = 0.2 * GIB
"""NCCL and custom all-reduce in addition, per participating GPU: SGLang's "Init torch distributed ends" shows 1.8 to 2.0 GiB with the
context on eight GPUs; four GPUs of 24 GiB start with 0.92 of them used."""
_MACHINE = 8
"""More GPUs than a machine has communicate over the network, with few buffers of their own."""
_LOADED_LESS, _LOADED_MORE = 0.1 * GIB, 0.25 * GIB
"""How far the printed size of 8- or 16-bit weights is from their count, however large they are: the excess is buffers, such as that of the
rotary positions. Of 41 starts 39 are within -0.01 and +0.2 GiB."""
_STEP_OFF = 0.1
"""How far a step of a dense text model is from what is counted: vLLM's profile shows 0.98 to 1.05 of one with 2,048 to 32,768 tokens."""
_WORK = ("outside torch", "working set", "sampler", "encoder")
"""Terms of the profile run."""


def served(
    setup: Setup,
    server: Server,
    total: int,
    *,
    taken: int,
    terms: tuple[Term, ...],
    beside: tuple[Term, ...],
    cache: ByteRange,
    checks: tuple[StartupCheck, ...],
    cached: Setup | None = None,
    token: float | None = None,
    request: int | None = None,
) -> Served:
    """Return how a GPU of `total` bytes is used. The first of `terms` are the weights; the context is one of them or of `beside`.

    `cached` is the setup whose attention is in the cache, if it is another one; `token` are the bytes per token, if they are not
    those of all layers.
    """
    if token is None:
        token = _printed_token(cached or setup, server, request)
    return Served(
        setup=setup,
        server=server,
        total=total,
        taken=taken,
        terms=terms,
        beside=beside,
        cache=cache,
        token=token,
        request=request,
        checks=checks,
        phases=tuple(_phases(terms, beside, cache)),
    )


def _printed_token(setup: Setup, server: Server, request: int | None) -> float:
    """Return the bytes of what vLLM prints as a token: of a full-length request, with its windows and states, or of every token.

    Source: vllm 0.20.0 and 0.20.1 v1/core/kv_cache_utils.py, _report_kv_cache_config.
    """
    every = token_bytes(setup) / server.dealt
    if not (server.profile.prints_requests or any(layer.compression for layer in setup.shape.each)):
        return block_token(setup, server) or every
    limited = any(window or state for (_, _, window, state), _ in layer_kinds(setup.shape))
    return request / server.length if request and server.length and limited else every


def _phases(terms: tuple[Term, ...], beside: tuple[Term, ...], cache: ByteRange) -> Iterator[Phase]:
    """Yield the moments of a startup: weights alone, the profile run, and the server with its cache."""
    loaded, every = terms[0], (*terms, *beside)
    context = tuple(term for term in every if term.name == "context")
    yield Phase(name="load", terms=(loaded, *context))
    yield Phase(name="profile", terms=(loaded, *(term for term in every if term.name in _WORK), *context))
    expected, low, high = (max(0, size) for size in (cache.expected, cache.low, cache.high))
    filled = Term(name="kv cache", bytes=expected, low=low, high=high, basis="the remainder of the share")
    yield Phase(name="serving", terms=(*terms, filled, *beside))


def loaded_weights(setup: Setup, server: Server) -> Term:
    """Return the weights that stay on the GPU."""
    whole, beside = weights.weights(setup), round(beside_a_share(setup) + _scales_left(setup, server))
    if server.drafted:
        beside += round(weights.proposing_layer(setup) / setup.layout.tensor)
    low, high = whole.low, whole.high
    if _is_counted_exactly(setup):
        low, high = whole.bytes - round(_LOADED_LESS), whole.bytes + round(_LOADED_MORE)
    expected, low, high = (max(0, size + beside - server.offload) for size in (whole.bytes, low, high))
    return replace(whole, bytes=expected, low=low, high=high)


def _scales_left(setup: Setup, server: Server) -> float:
    """Return the bytes of 4-bit expert scales that loading leaves on one GPU for a model with compressed keys."""
    if setup.weights.name != "mxfp4" or not any(layer.compression for layer in setup.shape.each):
        return 0.0
    return server.profile.scale_bytes * routed(setup.shape) / (setup.layout.tensor * setup.layout.pipeline)


def _is_counted_exactly(setup: Setup) -> bool:
    """Return whether only the sizes of a text model determine its weights: no tower, and no choice of what is packed."""
    shape = setup.shape
    return is_plain_text(shape) and shape.latent is None and not shape.each and setup.weights.bytes_per_param >= 1


def is_plain_text(shape: Shape) -> bool:
    """Return whether it is a text model whose sizes are its own."""
    return shape.vision is None and not shape.guessed


def cuda_context(setup: Setup) -> Term:
    """Return the CUDA context with NCCL."""
    cards = min(_cards(setup), _MACHINE)
    basis = "CUDA context and NCCL before the first weight: free memory at startup in vLLM's and SGLang's logs"
    return term("context", _CONTEXT + (_BETWEEN * cards if cards > 1 else 0), basis, low=0.3, high=1.6)


def one_step(setup: Setup, server: Server, buffers: float = 0.0) -> Term:
    """Return the high-water mark of one step of all layers; `buffers` are bytes that kernels allocate in advance."""
    shape = setup.shape
    layer = max(3 * _whole_width(shape) / setup.layout.tensor, workspace(setup)) + server.profile.step_states * shape.hidden
    basis = f"a step of {server.batched} tokens: gate and up, their product, and hidden states: vllm/model_executor/models/llama.py"
    size = server.batched * weights.HALF * layer
    off = _STEP_OFF if is_plain_text(shape) and shape.experts is None and not (buffers or setup.weights.unpacks) else 3 * _STEP_OFF
    return term("working set", size + buffers, basis, low=1 - off, high=1 + off)


def _whole_width(shape: Shape) -> int:
    """Return the width of what every token goes through: the MLP, or the experts that all tokens share."""
    experts = shape.experts
    return shape.intermediate if experts is None else experts.intermediate * experts.shared


def workspace(setup: Setup) -> float:
    """Return the values per token of a step in the two buffers of routed experts; 0 without experts.

    Each token is there once per expert it uses, as wide as the hidden states or the expert's intermediate output: workspace_shapes of
    vllm/model_executor/layers/fused_moe/fused_moe.py. Tensor parallel GPUs divide the experts, not the hidden states.
    """
    experts = setup.shape.experts
    if experts is None:
        return 0.0
    own, hidden = experts.intermediate / setup.layout.tensor, setup.shape.hidden
    return experts.active * (max(own, hidden) + max(2 * own, hidden))


def cuda_graphs(setup: Setup, server: Server, sizes: int, each: float, around: float = 0.0) -> Term | None:
    """Return CUDA graphs for this many batch sizes; None if none are captured.

    `each` are bytes per graph and layer, `around` those per graph whatever its layers.
    """
    if not server.graphs:
        return None
    layers = setup.shape.layers / setup.layout.pipeline
    size = sizes * (layers * each + around)
    return term("cuda graphs", size, f"{sizes} batch sizes x layers, as printed by the servers", low=0.2, high=1.8)


def _cards(setup: Setup) -> int:
    return setup.layout.tensor * setup.layout.pipeline


def block_bytes(setup: Setup) -> int:
    """Return the bytes of one block of the cache on one GPU."""
    return round(BLOCK * token_bytes(setup))


def token_bytes(setup: Setup) -> float:
    """Return the bytes of one token in the cache of one GPU."""
    return inference.cache_per_token(setup) * inference.heads_fraction(setup) / setup.layout.pipeline


def remaining(available: int | ByteRange, terms: tuple[Term, ...]) -> ByteRange:
    """Return the bytes that terms leave. The terms are independent: combine their deviations in quadrature."""
    if isinstance(available, int):
        available = ByteRange(available, available, available)
    expected = available.expected - sum(term.bytes for term in terms)
    down = hypot(available.expected - available.low, *(term.high - term.bytes for term in terms))
    up = hypot(available.high - available.expected, *(term.bytes - term.low for term in terms))
    return ByteRange(expected, round(expected - down), round(expected + up))
