"""The memory of a model's GGUF file: the type of each matrix as chosen by llama.cpp's quantizer (src/llama-quant.cpp)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from msgspec.structs import replace

from oomdoctor.case.setup import WeightFormat
from oomdoctor.case.shape import Part, Shape
from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.knowledge.tables.memory import known_format
from oomdoctor.memory.model.parts import layer_parts

_NAMED = re.compile(
    r"(?<![a-z0-9])(i?q\d(?:_(?:\d|kss|k[lst]?|xxs|xs|s|m|nl|bn))?(?:_(?:xxs|xs|xl|s|m|l))?|tq[12]_0|mxfp4_moe)(?![a-z0-9])", re.IGNORECASE
)
_ROW = 256
"""Values per block of the k-types: a matrix whose row length is not a multiple of it gets another type."""
_DOWN = 1 / 3
"""The last matrix's share of the matrices of an expert."""
_SAME_VALUE = 4
"""Query heads per key and value head from which the values get more bits."""


def mixture_in(name: str) -> str | None:
    """Return the type given by the name of a GGUF file (`Q4_K_M`, `UD-IQ2_XXS`), as named in the table; None if it gives none."""
    return next((row["name"] for word in _NAMED.findall(name) if (row := _mixtures().get(word.lower())) is not None), None)


def gguf_format(shape: Shape, name: str) -> WeightFormat | None:
    """Return the format of a model in a GGUF file of a type; None for a type that is not in the table."""
    row = _mixtures().get(name.lower())
    if row is None:
        return None
    packed, stored = _stored(shape, row["name"])
    every = sum(part.size for parts in layer_parts(shape) for part in parts)
    embedding = row["head"] if shape.tied else row["embedding"] or row["base"]
    return replace(
        known_format("gguf"),
        name=row["name"],
        bytes_per_param=stored / packed if packed else 2.0,
        kept_wide=every - packed,
        embedding_bytes=_bytes(embedding, shape.hidden),
        head_bytes=_bytes(row["head"], shape.hidden),
        source=row["source"],
    )


@lru_cache(maxsize=64)
def _stored(shape: Shape, name: str) -> tuple[int, float]:
    """Return the parameters in layers that are packed, and their bytes."""
    row, packed, stored = _mixtures()[name], 0, 0.0
    layers = layer_parts(shape)
    for number, parts in enumerate(layers):
        for part in parts:
            if part.is_matrix:
                packed += part.size
                stored += part.size * _width(shape, row, part, _gets_more_bits(row["bumped"], number, len(layers)))
    return packed, stored


def expert_bytes(shape: Shape, form: WeightFormat) -> tuple[float, ...]:
    """Return the bytes of the routed experts of each layer that has some."""
    row, layers = _mixtures().get(form.name), layer_parts(shape)
    sizes = (
        sum(
            part.size
            * (form.bytes_per_param if row is None else _width(shape, row, part, _gets_more_bits(row["bumped"], number, len(layers))))
            for part in parts
            if part.routed
        )
        for number, parts in enumerate(layers)
    )
    return tuple(size for size in sizes if size)


def _width(shape: Shape, row: Row, part: Part, bumped: bool) -> float:  # noqa: FBT001 - of a layer
    base, down = row["base"], row["down"] if bumped and row["down"] else row["base"]
    if part.routed or part.name == "mlp.shared_experts":
        if part.routed and row["experts"]:
            return _bytes(row["experts"], shape.hidden)
        inside = shape.experts.intermediate if shape.experts else _ROW
        return (1 - _DOWN) * _bytes(base, shape.hidden) + _DOWN * _bytes(down, inside)
    if part.name.endswith("v_proj"):
        few = shape.heads // max(1, shape.kv_heads) < _SAME_VALUE and row["base"].startswith(("iq", "q2"))
        raised = row["value"] and not few and (bumped or row["bumped"] != "half")
        return _bytes(row["value"] if raised else base, shape.hidden)
    if part.name.endswith("mlp.down_proj"):
        return _bytes(down, shape.intermediate)
    if part.name.endswith("o_proj"):
        return _bytes(row["attention_output"] or base, shape.query)
    return _bytes(base, shape.hidden)


def _gets_more_bits(which: str, number: int, layers: int) -> bool:
    """Return whether a layer is one of those that get more bits."""
    eighth = layers // 8
    if which == "half":
        return number < eighth or number >= 7 * layers // 8 or (number - eighth) % 3 == 2  # noqa: PLR2004 - use_more_bits of llama-quant.cpp
    return which == "all" or (which == "eighth" and number < eighth)


def _bytes(name: str, columns: int) -> float:
    """Return the bytes per value of a type, or of its substitute if rows are not whole blocks."""
    row = _types()[name]
    if row["instead"] and columns % int(row["values"]):
        row = _types()[row["instead"]]
    return int(row["bytes"]) / int(row["values"])


def type_bytes(name: str) -> float | None:
    """Return the bytes per value of a type by its name (`q8_0`), as for a cache; None for one that is not in the table."""
    return _bytes(name.lower(), _ROW) if name.lower() in _types() else None


@cache
def _types() -> dict[str, Row]:
    return {row["name"]: row for row in table("gguf_types")}


@cache
def _mixtures() -> dict[str, Row]:
    return {name: row for row in table("gguf_mixtures") for name in (row["name"], *filter(None, row["names"].split("|")))}
