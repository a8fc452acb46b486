"""GGUF files as tests write them: a header, and tensors of zeros of the bytes that a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import pack
from typing import Union

Value = Union[int, float, str, bool, Sequence[Union[int, bool, str]]]
ALIGNED = 32
_COUNTS, _BOOLEANS, _TEXTS, _LISTS = 4, 7, 8, 9


def text(value: str) -> bytes:
    encoded = value.encode()
    return pack("<Q", len(encoded)) + encoded


def value(given: Value) -> bytes:
    """A value with its type before it."""
    if isinstance(given, bool):
        return pack("<I?", _BOOLEANS, given)
    if isinstance(given, int):
        return pack("<II", _COUNTS, given)
    if isinstance(given, float):
        return pack("<If", 6, given)
    if isinstance(given, str):
        return pack("<I", _TEXTS) + text(given)
    each = [value(one) for one in given]
    return pack("<I", _LISTS) + each[0][:4] + pack("<Q", len(each)) + b"".join(one[4:] for one in each)


def header(values: Mapping[str, Value], tensors: Mapping[str, tuple[tuple[int, ...], int]], version: int = 3) -> bytes:
    """A header: tensors are their shapes and bytes."""
    pairs = b"".join(text(name) + value(given) for name, given in values.items())
    at, named = 0, b""
    for name, (shape, size) in tensors.items():
        named += text(name) + pack("<I", len(shape)) + b"".join(pack("<Q", one) for one in shape) + pack("<IQ", 0, at)
        at += size
    return b"GGUF" + pack("<IQQ", version, len(tensors), len(values)) + pairs + named


def file(values: Mapping[str, Value], tensors: Mapping[str, tuple[tuple[int, ...], int]]) -> bytes:
    """A whole file; sizes are multiples of the alignment."""
    start = header(values, tensors)
    return start + bytes(-len(start) % ALIGNED) + bytes(sum(size for _, size in tensors.values()))


LAYERS, HIDDEN, VOCAB = 4, 256, 512
VALUES: Mapping[str, Value] = {
    "general.architecture": "llama", "llama.block_count": LAYERS, "llama.embedding_length": HIDDEN, "llama.feed_forward_length": 1024,
    "llama.attention.head_count": 8, "llama.attention.head_count_kv": 2, "llama.context_length": 8192,
    "tokenizer.ggml.tokens": ["a", "b"], "tokenizer.ggml.scores": list(range(5000)), "general.file_type": 15,
}  # fmt: skip
"""A small model of Llama's kind, with a vocabulary that nobody reads."""


def tensors(layers: int = LAYERS, first: int = 0) -> dict[str, tuple[tuple[int, ...], int]]:
    """The tensors of so many layers in 4.5 bit: attention of 163,840 parameters, an MLP of 786,432."""
    made: dict[str, tuple[tuple[int, ...], int]] = {}
    for number in range(first, first + layers):
        made |= {
            f"blk.{number}.attn_q.weight": ((256, 256), 36864), f"blk.{number}.attn_k.weight": ((256, 64), 9216),
            f"blk.{number}.attn_v.weight": ((256, 64), 9216), f"blk.{number}.attn_output.weight": ((256, 256), 36864),
            f"blk.{number}.ffn_gate.weight": ((256, 1024), 147456), f"blk.{number}.ffn_up.weight": ((256, 1024), 147456),
            f"blk.{number}.ffn_down.weight": ((1024, 256), 147456),
        }  # fmt: skip
    return made


ENDS = {"token_embd.weight": ((HIDDEN, VOCAB), 73728), "output.weight": ((HIDDEN, VOCAB), 139264)}
"""4.5 bit, and 8.5."""
