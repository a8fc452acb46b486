"""A shape for a model if only the number of parameters is known."""

from __future__ import annotations

import re
from math import log

from msgspec.structs import replace

from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.shapes import dense
from oomdoctor.memory.model import parameters as count

_SMALLEST = 10_000_000
_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)(b|m)(?![a-z0-9])")
_UNITS = {"b": 10**9, "m": 10**6}


def size_in(name: str) -> int | None:
    """Return the number of parameters given in a model's name (`org/some-3b`, `Some-1.1B-chat`); None if it gives none or two.

    The experts of `8x7B` and the active ones of `A3B` are not the size of a model.
    """
    sizes = {int(float(number) * _UNITS[unit]) for number, unit in _SIZE.findall(name.rsplit("/", 1)[-1].lower())}
    return sizes.pop() if len(sizes) == 1 else None


def nearest_model(params: int, name: str) -> Shape | None:
    """Return the dense model of the nearest size, adjusted to the number of parameters; None below ten million."""
    if params < _SMALLEST:
        return None
    near = min(dense(), key=lambda shape: abs(log(count.total(shape) / params)))
    each = count.largest_layer(near)
    layers = max(1, round(near.layers + (params - count.total(near)) / each))
    like = replace(near, name=name, layers=layers, guessed=True)
    return replace(like, extra=max(0, params - count.total(like)))


def model_of_size(params: int, name: str) -> Shape:
    """Return a shape with exactly this many parameters, for a model whose own code was counted."""
    like = nearest_model(max(params, _SMALLEST), name)
    assert like is not None  # noqa: S101 - it is none of too few
    like = replace(like, extra=0)
    while count.total(like) > params and like.layers > 1:
        like = replace(like, layers=like.layers - 1)
    if count.total(like) > params:
        like = replace(like, hidden=1, intermediate=1, heads=1, kv_heads=1, head=1, vocab=1)
    return replace(like, extra=max(0, params - count.total(like)))
