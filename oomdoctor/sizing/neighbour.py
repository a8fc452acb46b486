"""A shape for a model of which only the number of parameters is known."""

from __future__ import annotations

from math import log

from msgspec.structs import replace

from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.shapes import dense
from oomdoctor.memory import parameters as count

_SMALLEST = 10_000_000


def neighbour(params: int, name: str) -> Shape | None:
    """The dense model of the nearest size, with as many parameters more or less as it takes; None below ten million."""
    if params < _SMALLEST:
        return None
    near = min(dense(), key=lambda one: abs(log(count.total(one) / params)))
    each = count.largest_layer(near)
    layers = max(1, round(near.layers + (params - count.total(near)) / each))
    like = replace(near, name=name, layers=layers, guessed=True)
    return replace(like, extra=max(0, params - count.total(like)))
