"""The header of a GGUF file -> the shape of its model: every layer with the tensors that it has, and what it keeps of a token.

Sources: llama.cpp src/llama-arch.cpp (names of values and tensors), src/llama-hparams.cpp (n_embd_k_gqa, n_embd_r, n_embd_s), and
src/llama-model.cpp (windows).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from oomdoctor.case.shape import Checkpoint, Experts, ModelLayer, PackedGroup, Part, Shape
from oomdoctor.knowledge.gguf_files.header import Header, Tensor, UnreadGguf
from oomdoctor.knowledge.tables.csv_table import table

_LAYER = re.compile(r"blk\.(\d{1,4})\.([a-z0-9_]{1,64})\b")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,40}")
"""Names of architectures that may be shown."""
_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"
_ROUTED = "_exps"
_STATE = ("ssm_", "shortconv")
_KEYS = ("attn_k", "attn_kv_a_mqa", "attn_qkv")
_MOST_LAYERS, _MOST_HEADS, _LARGEST = 4096, 1 << 16, 1 << 24
_FP32 = 4
_TOWERS = ("clip", "mmproj")


def gguf_shape(parts: Sequence[Header], name: str) -> Shape:
    """Return the shape of the model in a file, or in all parts of one. Raise UnreadGguf where its header does not say the sizes."""
    values = _Values(parts[0])
    if values.architecture in _TOWERS:
        raise UnreadGguf("it has a vision tower and no language model: specify the model's own file")
    tensors = {tensor.name: tensor for part in parts for tensor in part.tensors}
    layers, hidden, heads = (values.needed(key, most) for key, most in _SIZES)
    embedding, head = tensors.get(_EMBEDDING), tensors.get(_HEAD)
    if embedding is None or not embedding.size:
        raise UnreadGguf(f"it has no {_EMBEDDING}; if the file is split, specify the first part")
    of_layer: dict[int, list[Tensor]] = defaultdict(list)
    for tensor in tensors.values():
        if (matched := _LAYER.match(tensor.name)) is not None:
            of_layer[int(matched[1])].append(tensor)
    in_layers = [tensor for number in range(layers) for tensor in of_layer[number]]
    stored, params = sum(tensor.bytes for tensor in in_layers), sum(tensor.size for tensor in in_layers)
    if not params:
        raise UnreadGguf("it has no layers")
    return Shape(
        name=name,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=values.of_layer("attention.head_count_kv", 0) or heads,
        head=values.number("attention.key_length") or hidden // heads,
        intermediate=max(values.numbers("feed_forward_length") or values.numbers("expert_feed_forward_length") or (hidden,)),
        vocab=embedding.size // hidden,
        tied=head is None,
        experts=_experts(values, hidden),
        each=tuple(_layer(values, number, of_layer[number]) for number in range(layers)),
        longest=values.number("context_length"),
        checkpoint=Checkpoint(
            format="gguf",
            groups=(PackedGroup(stored / params),),
            embedding_bytes=embedding.bytes / embedding.size,
            head_bytes=head.bytes / head.size if head and head.size else embedding.bytes / embedding.size,
        ),
    )


_SIZES = (("block_count", _MOST_LAYERS), ("embedding_length", _LARGEST), ("attention.head_count", _MOST_HEADS))


class _Values:
    """What a header says of its model, below the name of the architecture."""

    def __init__(self, header: Header) -> None:
        self.values = header.values
        architecture = header.values.get("general.architecture")
        self.architecture = architecture if isinstance(architecture, str) else ""

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return a number, or one for each layer; none where it is not said or no size."""
        value = self.values.get(f"{self.architecture}.{key}")
        listed = value if isinstance(value, tuple) else (value,)
        return tuple(int(number) for number in listed if isinstance(number, int) and 0 <= number <= _LARGEST) if value is not None else ()

    def number(self, key: str) -> int | None:
        return next(iter(self.numbers(key)), None)

    def of_layer(self, key: str, layer: int) -> int | None:
        """Return the number of a layer: of a list its own, else that of all."""
        numbers = self.numbers(key)
        return None if not numbers else numbers[layer] if layer < len(numbers) else numbers[-1]

    def needed(self, key: str, most: int) -> int:
        """Return a size without which there is no model. Raise UnreadGguf where it is missing, 0, or cannot be."""
        size = max(self.numbers(key), default=0)
        if not 0 < size <= most:
            named = self.architecture if _PLAIN.fullmatch(self.architecture) else "ARCHITECTURE"
            raise UnreadGguf(f"its header has no {named}.{key}")
        return size


def _experts(values: _Values, hidden: int) -> Experts | None:
    routed, active = values.number("expert_count"), values.number("expert_used_count")
    if not routed or not active:
        return None
    wide = values.number("expert_feed_forward_length") or max(values.numbers("feed_forward_length"), default=hidden)
    return Experts(
        routed=routed,
        active=active,
        intermediate=wide,
        shared=values.number("expert_shared_count") or 0,
        dense_layers=values.number("leading_dense_block_count") or 0,
    )


def _layer(values: _Values, number: int, tensors: list[Tensor]) -> ModelLayer:
    names = {matched[2] for tensor in tensors if (matched := _LAYER.match(tensor.name)) is not None}
    routed = sum(tensor.size for tensor in tensors if _ROUTED in tensor.name)
    rest = sum(tensor.size for tensor in tensors) - routed
    parts = (Part("mlp", rest), *((Part("mlp.experts", routed, routed=True),) if routed else ()))
    has_state = any(name.startswith(_STATE) for name in names)
    attends = names & set(_KEYS[:2]) or (names & set(_KEYS) and not has_state)
    return ModelLayer(
        parts=parts,
        cache=_kept(values, number) if attends else 0,
        window=_window(values, number),
        state=_state(values) if has_state else 0,
    )


def _kept(values: _Values, number: int) -> int:
    """Return the values of a token in the cache: of latent attention the keys alone, which the values are a part of."""
    heads = values.of_layer("attention.head_count", number) or 1
    kv_heads = values.of_layer("attention.head_count_kv", number)
    kv_heads = heads if kv_heads is None else kv_heads
    usual = (values.number("embedding_length") or 0) // heads
    windowed = "_swa" if _window(values, number) is not None and values.number("attention.key_length_swa") else ""
    key = values.number(f"attention.key_length{windowed}") or usual
    value = values.number(f"attention.value_length{windowed}") or usual
    return kv_heads * (key if values.number("attention.kv_lora_rank") and kv_heads == 1 else key + value)


def _window(values: _Values, number: int) -> int | None:
    """Return the window of a layer: of those that a list or a period of the file names, else of those that the program has."""
    row = next((row for row in table("gguf_windows") if row["architecture"] == values.architecture), None)
    window = values.number("attention.sliding_window") or (int(row["window"]) if row is not None and row["window"] else None)
    pattern = values.values.get(f"{values.architecture}.attention.sliding_window_pattern")
    if not window:
        return None
    if isinstance(pattern, tuple):
        return window if number < len(pattern) and pattern[number] else None
    period = pattern if isinstance(pattern, int) and pattern > 0 else None if row is None else int(row["period"])
    return window if period is not None and number % period < period - 1 else None


def _state(values: _Values) -> int:
    """Return the bytes of the states of a sequence in one layer, in fp32."""
    kernel, inner, state, groups = (values.number(f"ssm.{key}") or 0 for key in ("conv_kernel", "inner_size", "state_size", "group_count"))
    cells = values.number("shortconv.l_cache") or 0
    hidden = values.number("embedding_length") or 0
    convolved = hidden * (cells - 1) if cells else max(0, kernel - 1) * (inner + 2 * groups * state)
    return _FP32 * (convolved + state * inner)
