"""What is trained: how many parameters, and in how many bytes each."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from oomdoctor.case.estimate import Adapters, Setup, Term
from oomdoctor.case.shape import Shape
from oomdoctor.memory import parameters as count
from oomdoctor.memory.term import term
from oomdoctor.memory.weights import HALF, own_head


class Group(Struct, frozen=True):
    """Parameters of one kind that are trained."""

    params: int
    width: float
    """Bytes of one of them."""
    beside: bool
    """Whether they lie beside the model's own weights and take memory of their own."""


def groups(setup: Setup) -> tuple[Group, ...]:
    """What an optimizer gets."""
    shape, adapters = setup.shape, setup.adapters
    if adapters is None:
        frozen_tower = shape.vision.params if shape.vision and setup.tower_trained is False else 0
        return (Group(count.total(shape) + own_head(setup) - frozen_tower, setup.weights.bytes_per_param, False),)
    out = [Group(adapter_params(shape, adapters), setup.stack.adapter_bytes, True)]
    copies = len(adapters.full & {"embed", "head"}) * count.embedding(shape)
    if copies:
        # peft keeps the original and trains a copy in the model's own type (peft/utils/other.py, ModulesToSaveWrapper).
        out.append(Group(copies, HALF, True))
    if adapters.blocks:
        out.append(Group(adapters.blocks * count.largest_layer(shape), HALF, False))
    return tuple(out)


@lru_cache(maxsize=1024)
def adapter_params(shape: Shape, adapters: Adapters) -> int:
    """The parameters of all adapters: r x (in + out) for each matrix."""
    if adapters.count is not None:
        return adapters.count
    return adapters.rank * sum(times * (into + out) for name in adapted(shape, adapters) for into, out, times in linears(shape, name))


def adapted(shape: Shape, adapters: Adapters) -> frozenset[str]:
    """The matrices that have adapters; where queries, keys and values are one matrix, they have one."""
    apart = adapters.targets & {"q", "k", "v"}
    return adapters.targets - apart | {"qkv"} if shape.fused_qkv and apart else adapters.targets


@lru_cache(maxsize=1024)
def linears(shape: Shape, target: str) -> tuple[tuple[int, int, int], ...]:
    """(in, out, how many in the model) of the matrices that a target names."""
    h, q, k, v = shape.hidden, shape.query, shape.key, shape.value
    attention = {"q": (h, q), "k": (h, k), "v": (h, v), "o": (q, h), "qkv": (h, q + k + v)}
    if target in attention:
        return ((*attention[target], shape.layers),)
    if target == "head":
        return ((h, shape.vocab, 1),)
    if target == "gate" and not shape.gated:
        return ()
    experts, number = shape.experts, count.expert_layers(shape)

    def one(width: int, times: int) -> tuple[int, int, int]:
        return (width, h, times) if target == "down" else (h, width, times)

    dense = (one(shape.intermediate, shape.layers - number),) if shape.layers > number else ()
    sparse = (one(experts.intermediate, number * (experts.routed + experts.shared)),) if experts is not None else ()
    return dense + sparse


def adapters(setup: Setup) -> Term | None:
    """The adapters and the copied modules themselves."""
    beside = [group for group in groups(setup) if group.beside]
    if not beside:
        return None
    size = sum(group.params * group.width for group in beside) / setup.layout.sharded(3) / setup.layout.tensor / setup.layout.pipeline
    return term(
        "adapters",
        size,
        "rank x (in + out) for each matrix: peft/tuners/lora/layer.py; fp32 by peft's autocast_adapter_dtype",
        low=0.5,
        high=1.1,
    )
