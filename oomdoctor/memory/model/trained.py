"""What is trained: how many parameters, and the bytes of each."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Adapters, Setup
from oomdoctor.case.shape import Shape
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model.placement import held
from oomdoctor.memory.model.weights import HALF, at_ends, copied_head, has_wide_ends, own_head
from oomdoctor.memory.term import term


class TrainedGroup(Struct, frozen=True):
    """Trained parameters of one kind."""

    params: int
    width: float
    """Bytes of one of them."""
    beside: bool
    """Whether they are separate from the model's own weights and use additional memory."""
    embedding: int = 0
    """How many of them belong to the embedding."""
    head: int = 0
    """How many of them belong to the output projection."""


def groups(setup: Setup) -> tuple[TrainedGroup, ...]:
    """Return what the optimizers of all GPUs get together."""
    shape, adapters = setup.shape, setup.adapters
    embedding = count.embedding(shape)
    if adapters is None:
        frozen_tower = shape.vision.params if shape.vision and setup.tower_trained is False else 0
        everything = count.total(shape) + own_head(setup) - frozen_tower
        width, head = setup.weights.bytes_per_param, count.output(shape) or own_head(setup)
        if has_wide_ends(setup):
            wide = TrainedGroup(at_ends(setup), 2 * HALF, False, embedding, head)
            return (TrainedGroup(everything - at_ends(setup), width, False), wide)
        return (TrainedGroup(everything, width, False, embedding, head),)
    params = adapter_params(shape, adapters)
    of_head = adapters.rank * (shape.hidden + shape.vocab) if "head" in adapters.targets else 0
    out = [TrainedGroup(params, adapter_width(setup), True, 0, min(params, of_head))]
    if adapters.full & {"embed", "head"}:
        # peft keeps the original and trains a copy in the model's own type (peft/utils/other.py, ModulesToSaveWrapper).
        copies = [embedding if name in adapters.full else 0 for name in ("embed", "head")]
        out.append(TrainedGroup(sum(copies), HALF, True, *copies))
    if adapters.blocks:
        width = 2 * HALF if setup.stack.full_weights == "fp32" else HALF
        out.append(TrainedGroup(adapters.blocks * count.largest_layer(shape), width, False))
    return tuple(out)


def held_groups(setup: Setup) -> tuple[TrainedGroup, ...]:
    """Return the part of that on this GPU, before it is sharded."""
    everything = groups(setup)
    if setup.layout.stages == 1:
        return everything
    return tuple(replace(group, params=_held(setup, group)) for group in everything)


def _held(setup: Setup, group: TrainedGroup) -> int:
    head = group.head or (copied_head(setup) if setup.adapters is None else 0)
    return round(held(setup, group.params - group.embedding - group.head, group.embedding, head))


def adapter_width(setup: Setup) -> int:
    """Return the bytes of one adapter weight: DeepSpeed casts the whole module to 16 bit (deepspeed/runtime/engine.py)."""
    return HALF if setup.layout.engine == "deepspeed" else setup.stack.adapter_bytes


@lru_cache(maxsize=1024)
def adapter_params(shape: Shape, adapters: Adapters) -> int:
    """Return the parameters of all adapters: r x (in + out) for each matrix."""
    if adapters.count is not None:
        return adapters.count
    return adapters.rank * sum(times * (into + out) for name in adapted(shape, adapters) for into, out, times in linears(shape, name))


def adapted(shape: Shape, adapters: Adapters) -> frozenset[str]:
    """Return the matrices that have adapters; if queries, keys and values are one matrix, or gate and up, they share one."""
    targets = adapters.targets
    for whole, parts, fused in (("qkv", {"q", "k", "v"}, shape.fused_qkv), ("gate_up", {"gate", "up"}, shape.fused_gate)):
        if fused and targets & parts:
            targets = targets - parts | {whole}
    return targets


@lru_cache(maxsize=1024)
def linears(shape: Shape, target: str) -> tuple[tuple[int, int, int], ...]:
    """Return (in, out, how many in the model) of the matrices that a target names."""
    h, q, k, v = shape.hidden, shape.query, shape.key, shape.value
    attention = {"q": (h, q), "k": (h, k), "v": (h, v), "o": (q, h), "qkv": (h, q + k + v)}
    if target in attention:
        return ((*attention[target], shape.layers),)
    if target == "head":
        return ((h, shape.vocab, 1),)
    if target == "gate" and not shape.gated:
        return ()
    experts, number = shape.experts, count.expert_layers(shape)

    def matrix(width: int, times: int) -> tuple[int, int, int]:
        return (width, h, times) if target == "down" else (h, 2 * width if target == "gate_up" else width, times)

    dense = (matrix(shape.intermediate, shape.layers - number),) if shape.layers > number else ()
    sparse = (matrix(experts.intermediate, number * (experts.routed + experts.shared)),) if experts is not None else ()
    return dense + sparse


def adapters(setup: Setup) -> Term | None:
    """Return the adapters and the copied modules themselves."""
    beside = [group for group in held_groups(setup) if group.beside]
    if not beside:
        return None
    size = sum(group.params * group.width for group in beside) / setup.layout.sharded(3) / setup.layout.tensor
    return term(
        "adapters",
        size,
        "rank x (in + out) for each matrix: peft/tuners/lora/layer.py; fp32 by peft's autocast_adapter_dtype",
        low=0.5,
        high=1.1,
    )
