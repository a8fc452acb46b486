"""From live tensors to what the GPU shows: torch's caching allocator, the CUDA context, NCCL."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.term import term

MIB = 1 << 20
_SMALL, _SMALL_SEGMENT = MIB, 2 * MIB
_MIDDLE, _MIDDLE_SEGMENT = 10 * MIB, 20 * MIB
"""Requests, and the segments that serve them: kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer of c10/cuda/CUDACachingAllocator."""
_EVEN = (0.0, 0.10, 0.30)
"""Reserved and unused, as a share of what comes and goes, if every step requests the same sizes: blocks fit again, and only the ends of
segments are lost. At least, expected, at most."""
_UNEVEN = (0.10, 1.50, 2.80)
"""The same if lengths vary: segments of shorter batches cannot serve a longer one, so about one more typical batch stays reserved (the
ms-swift benchmark of 2023, docs/accuracy.md). It is less if the longest batch comes early, more if batches grow one after another."""
_EITHER = (0.0, 0.20, 1.60)
"""The same for what nvidia-smi shows if lengths are not known to be even: what most sources that read it would choose, each left out in
turn (docs/accuracy.md). It is far below a peak of reserved memory, since the longest batch rarely comes last."""
_UNSAID = (0.0, 0.10, 0.80)
"""The same if it is unknown which counter it is and whether lengths are even."""
_UNSAID_REST = 0.6
"""The share of it that is expected if it is unknown which counter it is: a counter of live tensors does not include it."""
_GROWING = (0.0, 1.0, 1.3)
"""A cache that grows by concatenation leaves behind the sizes that it had: up to as much again (torch.cat in DynamicCache)."""
_CONTEXT = 700 * MIB
"""CUDA context: 0.47 to 0.92 GiB on an A100 since torch 1.13 (stas00/ml-engineering, training/performance)."""
_KERNELS = 600 * MIB
"""Additional memory loaded by a run of training kernels: 0.5 to 0.7 GiB (the same source)."""
_NCCL = 1000 * MIB
"""Communicators of two or more GPUs: 0.73 to 1.45 GiB (the same source)."""
_COMING = (
    "activations",
    "recomputed layer",
    "logits",
    "gathered logits",
    "prompt",
    "gathered weights",
    "unpacked weights",
    "vision tower",
    "collected logits",
    "denoiser",
    "vae pass",
)
"""Terms that come and go within a step; the others stay where they are."""
_TRAFFIC = {"activations", "recomputed layer", "logits", "collected logits", "kv cache"}
"""In the phases that have these, tensors of all sizes come and go."""


def segment(size: int) -> int:
    """Return the bytes that the allocator requests from the driver for a request that no free block serves."""
    if size <= _SMALL:
        return _SMALL_SEGMENT
    if size < _MIDDLE:
        return _MIDDLE_SEGMENT
    return -(-size // (2 * MIB)) * 2 * MIB


def is_busy(terms: Sequence[Term]) -> bool:
    """Return whether tensors of many sizes come and go in a phase."""
    return any(term.name in _TRAFFIC for term in terms)


def slack(setup: Setup, terms: Sequence[Term], busy: Sequence[Sequence[Term]]) -> Term | None:
    """Return what is reserved beyond the live tensors of one phase, for the counters that include it.

    Blocks of one phase rarely fit what another one requests, so what comes and goes in any busy phase stays reserved, in addition to
    the persistent terms of the fullest of them; `busy` are the terms of those phases.
    """
    if setup.counter == "max_allocated":
        return None
    if setup.task != "train":
        least, expected, most = _GROWING
        coming, other = sum(term.bytes for term in terms if term.name == "kv cache"), 0
    else:
        least, expected, most = _shares(setup)
        coming = _union(busy)
        standing = max(sum(part.bytes for part in phase if part.name not in _COMING) for phase in busy)
        other = standing + coming - sum(part.bytes for part in terms) + _waiting(setup, terms)
    return Term(
        name="allocator",
        bytes=round(other * (_UNSAID_REST if setup.counter == "unknown" and setup.task == "train" else 1.0) + coming * expected),
        low=round(coming * least),
        high=round(other + coming * most),
        basis="memory left by other phases, and a share of what is allocated and freed in a step: docs/accuracy.md",
    )


def around(terms: Sequence[Term]) -> Term | None:
    """Return what cannot be used around the blocks of one phase after everything else that is reserved was released."""
    coming = _union([terms])
    if not coming:
        return None
    least, expected, most = _EVEN
    return term("allocator", coming * expected, "ends of partly used segments: docs/accuracy.md", low=least, high=most / expected)


def _waiting(setup: Setup, terms: Sequence[Term]) -> int:
    """Return blocks that ZeRO-3 has freed and cannot use again yet.

    It gathers on its own stream and marks the blocks with record_stream: they wait for events of that stream while the next
    pieces are gathered (deepspeed/runtime/zero/partitioned_param_coordinator.py).
    """
    if setup.layout.engine != "deepspeed":
        return 0
    return sum(term.bytes for term in terms if term.name == "gathered weights")


def _shares(setup: Setup) -> tuple[float, float, float]:
    if setup.counter == "unknown":
        return _UNSAID
    if setup.even_lengths or setup.stack.longest_first:
        return _EVEN
    return _UNEVEN if setup.even_lengths is False and setup.counter == "max_reserved" else _EITHER


def _union(busy: Sequence[Sequence[Term]]) -> int:
    """Return the bytes of all that comes and goes, each term at its largest."""
    largest: dict[str, int] = {}
    for part in (part for phase in busy for part in phase):
        if part.name in _COMING:
            largest[part.name] = max(part.bytes, largest.get(part.name, 0))
    return sum(largest.values())


def outside(setup: Setup) -> Term | None:
    """Return what the driver counts and torch does not."""
    if setup.counter in ("max_allocated", "max_reserved"):
        return None
    unsaid = setup.counter == "unknown"
    nccl = _NCCL if setup.layout.cards > 1 and setup.layout.engine != "device_map" else 0
    size = _CONTEXT + (_KERNELS if setup.task == "train" else 0) + (nccl // 2 if unsaid else nccl)
    if unsaid and setup.task != "train":
        # Inference figures come from torch's counters as often as from the driver's; training figures are read from nvidia-smi.
        size //= 2
    low, high = (0.0, 1.75) if unsaid else (0.6, 1.6)
    return term("context", size, "CUDA context and NCCL: stas00/ml-engineering, training/performance", low=low, high=high)
