"""Servers that take a share of the card and fill what is left with KV cache: vLLM and SGLang."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Setup
from oomdoctor.memory import allocator, inference, weights

_PROFILED = 8192
"""Tokens of vLLM's profile run where max_num_batched_tokens is not given (vllm/engine/arg_utils.py)."""


class Budget(Struct, frozen=True):
    """What a server can do with a card."""

    taken: int
    """Bytes that it takes of the card."""
    cache: int
    """Bytes that are left for the KV cache; negative where the weights alone do not fit."""
    tokens: int
    """Tokens that the cache holds."""


def budget(setup: Setup, card: int, share: float, batched: int | None = None, *, server: str | None = "vllm") -> Budget:
    """The budget of a server for the model of a setup: SGLang's sum, or vLLM's; `batched` are the tokens of one step at most."""
    counted = replace(setup, batch=1, length=batched or _PROFILED, counter="nvidia-smi")
    outside = allocator.outside(counted)
    per_token = inference.cache_per_token(setup) / (setup.layout.tensor * setup.layout.pipeline)
    if server == "sglang":
        return sglang(card, share, weights.weights(setup).bytes, per_token)
    return vllm(card, share, weights.weights(setup).bytes, outside.bytes if outside else 0, inference.prompt(counted).bytes, per_token)


def vllm(card: int, share: float, weights: int, outside: int, activations: int, per_token: float) -> Budget:
    """vLLM: card x gpu_memory_utilization - weights - what is outside torch - the peak of the profile run.

    The sum is what vLLM prints at its start (vllm/worker/worker.py, determine_num_available_blocks).
    """
    taken = int(card * share)
    cache = taken - weights - outside - activations
    return Budget(taken, cache, max(0, int(cache / per_token)))


def sglang(card: int, share: float, weights: int, per_token: float) -> Budget:
    """SGLang: mem_fraction_static covers weights and cache; activations and CUDA graphs live in the rest (sglang/srt/server_args.py)."""
    taken = int(card * share)
    cache = taken - weights
    return Budget(taken, cache, max(0, int(cache / per_token)))
