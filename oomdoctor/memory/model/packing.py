"""The effect of a checkpoint's own formats on its weights: how many parameters stay in 16 bit, and the bytes of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec.structs import replace

from oomdoctor.case.setup import WeightFormat
from oomdoctor.case.shape import Checkpoint, Part, Shape
from oomdoctor.memory.model.parts import layer_parts

_ABOVE = re.compile(r"^(?:(?:model|language_model|backbone|transformer|text_model|thinker)\.)+")
_ALIASES = (
    ("block_sparse_moe.", "mlp."),
    (".ffn.", ".mlp."),
    (".feed_forward.", ".mlp."),
    (".attn.", ".self_attn."),
    ("shared_expert.", "shared_experts."),
    ("layers.mixer.", "layers."),
)
_LONGEST = 200
_MOST_WILD = 8
"""Parts of a pattern that match anything; a pattern with more is not used."""
_QUANTIFIED_GROUP = re.compile(r"\)[*+{?]|[*+}][*+{]")
_MX_BYTES = 0.5 + 1 / 32
_MX_ROW, _MX_COLUMNS = 256, 64
"""Kernels for MXFP4 experts require hidden states in multiples of 256 values, and on each GPU multiples of at least 64 inside an expert:
vllm/model_executor/layers/fused_moe/oracle/mxfp4.py, mxfp4_round_up_hidden_size_and_intermediate_size."""
_HALF = 2
_MIXING = ("self_attn.", "linear_attn.", "mixer.")
_ROOTS = ("model.", "model.language_model.", "language_model.model.", "")


def packed_format(shape: Shape, checkpoint: Checkpoint, known: WeightFormat, tensor: int = 1) -> WeightFormat:
    """Return the format of a checkpoint, divided among `tensor` GPUs: `known` is the table's entry for its name."""
    packed, stored, head, attention = _packed(shape, checkpoint, tensor)
    every = sum(part.size for parts in layer_parts(shape) for part in parts)
    if not packed:
        return replace(known, name="bf16", bytes_per_param=2.0, packed=False)
    own = replace(known, bytes_per_param=stored / packed, packed=True, kept_wide=every - packed, head_bytes=head, unties=False)
    ends = {"embedding_bytes": checkpoint.embedding_bytes, "head_bytes": checkpoint.head_bytes}
    return replace(own, attention_bytes=attention, **{name: width for name, width in ends.items() if width is not None})


@lru_cache(maxsize=64)
def _packed(shape: Shape, checkpoint: Checkpoint, tensor: int) -> tuple[int, float, float | None, float | None]:
    """Return the parameters in packed layers, and their bytes; then the bytes per parameter of the output projection, and of attention.

    None is 16 bit for the output projection, and no attention for the other.
    """
    kept = _ModuleNames(checkpoint.kept)
    groups = [(group.bytes_per_param, _ModuleNames(group.targets) if group.targets else None) for group in checkpoint.groups]
    packed, stored, mixing, mixed = 0, 0.0, 0, 0.0
    for number, parts in enumerate(layer_parts(shape)):
        for part in parts:
            width = _width(part, f"layers.{number}.{part.name}", kept, groups)
            if width is not None:
                packed, stored = packed + part.size, stored + width * part.size * _padding(shape, part, width, tensor)
            if part.is_matrix and part.name.startswith(_MIXING):
                mixing, mixed = mixing + part.size, mixed + (_HALF if width is None else width) * part.size
    head = next((width for width, names in groups if names is not None and names.has("lm_head")), None)
    return packed, stored, head, mixed / mixing if mixing else None


def _padding(shape: Shape, part: Part, width: float, tensor: int) -> float:
    """Return how much larger MXFP4 experts are on a GPU: longer rows, and more of them."""
    if not part.routed or width != _MX_BYTES or shape.experts is None:
        return 1.0
    inside = shape.experts.intermediate / tensor
    return -(-shape.hidden // _MX_ROW) * _MX_ROW / shape.hidden * -(-inside // _MX_COLUMNS) * _MX_COLUMNS / inside


def _width(part: Part, name: str, kept: _ModuleNames, groups: list[tuple[float, _ModuleNames | None]]) -> float | None:
    if not part.is_matrix or kept.has(name):
        return None
    return next((width for width, names in groups if names is None or names.has(name)), None)


class _ModuleNames:
    """Modules as configs write them: whole names, names with `*`, and regular expressions after `re:`."""

    def __init__(self, written: Iterable[str]) -> None:
        plain, wild = set(), []
        for name in written:
            if name.startswith("re:"):
                wild += _expression(name[3:])
            elif "*" in name:
                wild += _compiled(rf"(?:^|\.){re.escape(_canonical(name)).replace(re.escape('*'), '.*')}(?:\.|$)")
            else:
                plain.add(_canonical(name))
        # One expert stands for all of them: a name with its number is one of them.
        self._plain = frozenset(plain | {name.split(".experts.")[0] + ".experts" for name in plain if ".experts." in name})
        self._wild = tuple(dict.fromkeys(wild))
        self._seen: dict[str, bool] = {}

    def has(self, name: str) -> bool:
        """Return whether the names include a module, one above it, or one of its parts."""
        return not self._plain.isdisjoint(_runs(name)) or any(pattern.search(root + name) for pattern in self._wild for root in _ROOTS)


def _runs(name: str) -> Iterator[str]:
    """Yield every run of the words in a name (`mlp.gate` of `layers.0.mlp.gate`)."""
    words = name.split(".")
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            yield ".".join(words[start:end])


def _canonical(name: str) -> str:
    below = _ABOVE.sub("", name)
    for other, own in _ALIASES:
        below = below.replace(other, own)
    return below


def _expression(pattern: str) -> list[re.Pattern[str]]:
    """Return a regular expression from a config, if it cannot take long: short, no repeated group, few wild parts."""
    wild = pattern.count("*") + pattern.count("+")
    if len(pattern) > _LONGEST or wild > _MOST_WILD or _QUANTIFIED_GROUP.search(pattern):
        return []
    return _compiled(rf"^(?:{pattern})")


def _compiled(pattern: str) -> list[re.Pattern[str]]:
    try:
        return [re.compile(pattern)]
    except (re.error, OverflowError, RecursionError):
        return []
