"""A run -> the memory it uses on one GPU, with the range that the assumptions leave."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import hypot
from typing import Literal

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption, Estimate, Phase, Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory import activations, allocator, ggml, loading, optimizer, pictures, saving
from oomdoctor.memory.model import trained, weights
from oomdoctor.memory.phases import phases
from oomdoctor.memory.ranks import ranks

_PINNED = 1.5
"""Host memory per offloaded byte: `additional_buffer_factor` of deepspeed/runtime/zero for page-locked buffers."""

Seen = Literal["torch", "nvidia-smi", "unknown"]
"""Whose figure is predicted."""
_UNNAMED: Mapping[tuple[bool, Seen], tuple[float, float]] = {
    (True, "torch"): (0.07, 0.20),
    (True, "nvidia-smi"): (0.14, 0.20),
    (True, "unknown"): (0.07, 0.20),
    (False, "torch"): (0.05, 0.25),
    (False, "nvidia-smi"): (0.05, 0.25),
    (False, "unknown"): (0.10, 0.30),
}
"""What no formula here names, as shares of the whole: (training, whose figure) -> (less, more). Kernels' workspaces, eager attention,
copies in a program's own loop; with an unknown counter also decimal units (7 %). What people read from nvidia-smi is rounded, and data
rarely reaches the truncation length. docs/accuracy.md shows how often it holds."""
_UNNAMED_GGML = (0.05, 0.10)
"""The same for llama.cpp: every buffer exists from the start; only the pools for unpacked matrices grow (ggml-cuda, ggml_cuda_pool)."""
_ONCE = frozenset({"load", "save", "merge"})
"""Phases that do not occur in every step."""
_BETWEEN_CARDS = 0.02
"""The same for what is between several training GPUs: flattened copies, NCCL channels, prefetched pieces."""


def estimate(setup: Setup, assumptions: tuple[Assumption, ...] = ()) -> Estimate:
    """Estimate the peak of a run on its fullest GPU."""
    return _fullest(setup, [_of(rank, phases(rank)) for rank in ranks(setup)], assumptions)


def needed(setup: Setup, *, outside: bool = True) -> Estimate:
    """Estimate what must be available on a GPU for no request to fail; `outside` counts the CUDA context and NCCL too.

    That is less than what nvidia-smi eventually shows: before a request fails, torch releases the blocks that it holds and no
    tensor uses (release_cached_blocks of c10/cuda/CUDACachingAllocator.cpp). What is around blocks in use stays.
    """
    beside = allocator.outside(replace(setup, counter="nvidia-smi")) if outside else None
    return _fullest(setup, [_needed(rank, beside) for rank in ranks(setup)])


def _needed(setup: Setup, beside: Term | None) -> Estimate:
    if setup.ggml is not None:
        return _of(setup, phases(setup))
    estimate = _of(setup, _live(setup, beside), _UNNAMED[setup.task == "train", "torch"])
    if setup.task == "train" or setup.prompt_logits is not None or setup.pictures is not None:
        return estimate
    # Few programs compute the logits of whole prompts, and they need so much more that no range for the others covers them.
    old = _needed(replace(setup, prompt_logits=True), beside)
    return replace(estimate, high=max(estimate.high, old.expected))


def _live(setup: Setup, beside: Term | None) -> tuple[Phase, ...]:
    """Return the phases with what no GPU can do without: live tensors, what is around them, and what is outside torch."""
    live = phases(replace(setup, counter="max_allocated"))
    return tuple(_with(phase, allocator.around(phase.terms), beside) for phase in live)


def _with(phase: Phase, *terms: Term | None) -> Phase:
    return replace(phase, terms=(*phase.terms, *(term for term in terms if term is not None)))


def _fullest(setup: Setup, estimates: Sequence[Estimate], assumptions: tuple[Assumption, ...] = ()) -> Estimate:
    """Return the GPU that is expected to be the fullest, with the range of whichever one is: any one of them can stop the run."""
    if len(estimates) == 1:
        return replace(estimates[0], assumptions=assumptions) if assumptions else estimates[0]
    fullest = max(estimates, key=lambda estimate: estimate.expected)
    low, high = max(estimate.low for estimate in estimates), max(estimate.high for estimate in estimates)
    return replace(fullest, setup=setup, low=low, high=high, assumptions=assumptions, ranks=tuple(estimates))


def _of(setup: Setup, every: tuple[Phase, ...], unnamed: tuple[float, float] | None = None) -> Estimate:
    peak = max(every, key=lambda phase: phase.bytes)
    below, above = unnamed or _unnamed(setup)
    above += _BETWEEN_CARDS if setup.layout.cards > 1 and setup.task == "train" else 0.0
    ranges = {phase.name: bounds(phase, below, above) for phase in every}
    return Estimate(
        setup=setup,
        phases=every,
        expected=peak.bytes,
        # No peak is below any phase, including the minimum of each.
        low=max(low for low, _ in ranges.values()),
        # The uncertainty of a phase can make it the peak; for phases that occur once, programs that do the worst are few.
        high=max(high if phase is peak or phase.name not in _ONCE else phase.bytes for phase in every for high in ranges[phase.name][1:]),
        host=host(setup),
        host_loading=loading.host(setup) if setup.pictures is None else 0,
        host_saving=saving.host(setup) if setup.task == "train" and setup.pictures is None else 0,
    )


def at_phases(setup: Setup, names: Container[str]) -> tuple[int, int, int] | None:
    """Return the expected, minimum and maximum bytes of the largest of these phases; None if the run has none of them."""
    every = (phase for rank in ranks(setup) for phase in phases(rank))
    phase = max((phase for phase in every if phase.name in names), key=lambda phase: phase.bytes, default=None)
    if phase is None:
        return None
    return phase.bytes, *bounds(phase, *_unnamed(setup))


def _unnamed(setup: Setup) -> tuple[float, float]:
    seen: Seen = "torch" if setup.counter == "max_allocated" or setup.counter == "max_reserved" else setup.counter
    return _UNNAMED_GGML if setup.ggml is not None else _UNNAMED[setup.task == "train", seen]


def bounds(phase: Phase, below: float, above: float) -> tuple[int, int]:
    """Return the range of a sum of independent terms: combine their deviations in quadrature."""
    down = hypot(below * phase.bytes, *(term.bytes - term.low for term in phase.terms))
    up = hypot(above * phase.bytes, *(term.high - term.bytes for term in phase.terms))
    return max(0, round(phase.bytes - down)), round(phase.bytes + up)


def host(setup: Setup) -> int:
    """Return the bytes of host memory for what is offloaded, for all GPUs together; 0 if nothing is."""
    if setup.ggml is not None:
        return round(ggml.on_host(setup, setup.ggml))
    if setup.pictures is not None:
        return round(pictures.on_host(setup, setup.pictures))
    size = 0.0
    if setup.offload_params:
        size += weights.stored(setup)
    if setup.offload_optimizer:
        size += sum(group.params * (optimizer.state_width(setup, group) + weights.HALF) for group in trained.groups(setup))
    if setup.offload_activations:
        size += setup.layout.cards * setup.shape.layers * activations.boundary(setup)
    return round(size * _PINNED + _paged(setup))


def _paged(setup: Setup) -> float:
    """Return the bytes of optimizer states that the driver can move to the host, for all GPUs: managed memory, which is not pinned."""
    if setup.task != "train" or setup.offload_optimizer or not setup.optimizer.paged:
        return 0.0
    layout = setup.layout
    copies = layout.cards / (layout.sharded(1) * layout.tensor * layout.pipeline)
    return copies * sum(group.params * optimizer.state_width(setup, group) for group in trained.groups(setup))
