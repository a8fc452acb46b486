"""llama.cpp and programs built on it: every buffer is allocated at the start, and layers that do not fit stay on the host.

Sources: llama.cpp src/llama-model.cpp (load_tensors: the input embedding stays on the host, and the last of the layers that
`-ngl` counts is the output projection), src/llama-kv-cache.cpp and src/llama-context.cpp (the graph buffer).
"""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.estimate import Phase, Term
from oomdoctor.case.setup import GgmlRun, Setup
from oomdoctor.memory import inference
from oomdoctor.memory.activations import width
from oomdoctor.memory.model import weights
from oomdoctor.memory.model.gguf import expert_bytes
from oomdoctor.memory.model.placement import card_placement, held
from oomdoctor.memory.term import term
from oomdoctor.units import GIB

_FP32 = 4
_CONTEXT = 0.4 * GIB
"""CUDA context with cuBLAS, which no llama.cpp log names: the driver's figure minus its buffers."""
_WIDE, _STATES = 3, 2
"""Gate, up and their product, and two hidden states, all in fp32."""


def phases(setup: Setup, run: GgmlRun) -> tuple[Phase, ...]:
    """Return the moments of a run: weights alone, and everything that exists until it ends."""
    context = term("context", _CONTEXT, "CUDA context and cuBLAS", low=0.5, high=1.6)
    loaded = _weights(setup, run)
    return (
        Phase(name="load", terms=(loaded, context)),
        Phase(name="generation", terms=(loaded, _cache(setup, run), _graph(setup, run), context)),
    )


def on_host(setup: Setup, run: GgmlRun) -> float:
    """Return the bytes of weights and cache that stay in host memory, for all GPUs together."""
    share, whole = 1 - _share(setup, run), replace(setup, placement=None)
    first, last = weights.embedding(whole), weights.head(whole)
    layers = share * (weights.stored(whole) - first - last + _sequence(whole, run))
    return layers + first + (0 if _scores(setup, run) else last) + (1 - share) * _experts_on_host(whole, run)


def _experts_on_host(setup: Setup, run: GgmlRun) -> float:
    """Return the bytes of experts that stay on the host, from layers otherwise on the GPU; the first layers keep theirs there."""
    if not run.host_experts:
        return 0.0
    sizes = expert_bytes(setup.shape, setup.weights)
    first, part = sizes[: int(run.host_experts)], sizes[int(run.host_experts) :][:1]
    return sum(first) + (run.host_experts - int(run.host_experts)) * sum(part)


def _share(setup: Setup, run: GgmlRun) -> float:
    return 1.0 if run.layers is None else min(1.0, run.layers / setup.shape.layers)


def _scores(setup: Setup, run: GgmlRun) -> bool:
    return run.layers is None or run.layers > setup.shape.layers


def _weights(setup: Setup, run: GgmlRun) -> Term:
    first, last = weights.embedding(setup), weights.head(setup)
    layers = (weights.stored(setup) - first - last - _experts_on_host(setup, run)) * _share(setup, run)
    # A tied output projection is a copy of the embedding, which stays on the host.
    size = held(setup, layers, 0, (last or first) if _scores(setup, run) else 0)
    return term("weights", size, "layers of -ngl and the output projection: llama.cpp src/llama-model.cpp", low=0.97, high=1.03)


def _cache(setup: Setup, run: GgmlRun) -> Term:
    """Return the cache of the whole context, which all requests share; windows also keep what one chunk adds to them."""
    size = held(setup, _sequence(setup, run)) * _share(setup, run) * setup.batch
    return term("kv cache", size, "cells x layers x bytes of the types: llama.cpp src/llama-kv-cache.cpp", low=0.98, high=1.03)


def _sequence(setup: Setup, run: GgmlRun) -> float:
    """Return the cache of the whole context, all layers; a window that keeps all tokens adds nothing to them."""
    return inference.sequence_cache(setup, setup.length, setup.length if run.whole_windows else run.chunk)


def _graph(setup: Setup, run: GgmlRun) -> Term:
    """Return the graph buffer: the logits, or the middle of a layer if the output is computed elsewhere.

    Without flash attention it is at least the attention of a chunk to the whole context, for every head (src/llama-graph.cpp).
    """
    shape, scores = setup.shape, card_placement(setup).scores and _scores(setup, run)
    attended = shape.heads * setup.length if setup.eager_attention else 0
    widest = max(_WIDE * width(shape), shape.vocab if scores else 0, attended)
    size = run.chunk * _FP32 * (widest + _STATES * shape.hidden)
    basis = f"{run.chunk} tokens in fp32{'' if attended else ', with flash attention'}: llama.cpp src/llama-context.cpp"
    return term("working set", size, basis, low=0.7, high=1.6)
