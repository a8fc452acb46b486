"""The header of a GGUF file: what it says of its model, and the name, size and bytes of every tensor. Nothing else of the file is read.

Source: docs/gguf.md of ggml, and ggml/src/gguf.cpp of llama.cpp (versions 2 and 3, little-endian).
"""

from __future__ import annotations

from math import prod
from struct import Struct as Layout
from struct import error as LayoutError
from typing import BinaryIO, Union

from msgspec import Struct

MOST_BYTES = 64 << 20
"""Bytes of a header; the largest vocabularies take 20 MiB."""
_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_TENSORS, _MOST_VALUES, _MOST_DIMENSIONS, _LONGEST_DIMENSION = 1 << 17, 1 << 16, 4, 1 << 40
_LONGEST_NAME, _LONGEST_TEXT, _LONGEST_LIST = 256, 4096, 4096
"""A longer text or list is passed over; so are lists of texts and of lists: none of them is a size."""
_DEEPEST = 4
_MOST_LISTED = 1 << 21
"""Lists of lists, and values of one of texts: the largest vocabularies have half a million merges."""
_ALIGNMENT = 32
_MOST_ALIGNED = 1 << 20
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _LIST = 8, 9
_LAYOUTS = {kind: Layout(written) for kind, written in _NUMBERS.items()}
_COUNT, _KIND = Layout("<Q"), Layout("<I")

Value = Union[int, float, str, bool, tuple[Union[int, float, bool], ...]]


class UnreadGguf(Exception):
    """Why a file's header cannot be read, in one line."""


class Tensor(Struct, frozen=True):
    """A tensor of a file."""

    name: str
    shape: tuple[int, ...]
    """Rows come first: the number of columns, then of rows."""
    bytes: int
    """What it takes of the file, whatever its type."""

    @property
    def size(self) -> int:
        """Its values."""
        return prod(self.shape)


class Header(Struct, frozen=True):
    """What a file says. Texts are as they stand there: not to be printed."""

    values: dict[str, Value]
    tensors: tuple[Tensor, ...]


def read_header(file: BinaryIO, size: int) -> Header:
    """Return the header of a file of `size` bytes. Raise UnreadGguf where it is none, is cut off, or has sizes that cannot be."""
    reader = _HeaderBytes(file.read(min(size, MOST_BYTES)))
    try:
        if reader.take(len(_MAGIC)) != _MAGIC:
            raise UnreadGguf("it is not a GGUF file")
        version = reader.number(_KIND)
        if version not in _VERSIONS:
            raise UnreadGguf(f"GGUF version {version} is not known, or the file is big-endian")
        tensors, pairs = reader.count(_MOST_TENSORS, "tensors"), reader.count(_MOST_VALUES, "values")
        values: dict[str, Value] = {}
        for _ in range(pairs):
            name, value = reader.text(_LONGEST_NAME), reader.value(reader.number(_KIND))
            if name is not None and value is not None:
                values[name] = value
        named = [reader.tensor() for _ in range(tensors)]
    except (LayoutError, EOFError) as why:
        raise UnreadGguf("its header is truncated" if size <= MOST_BYTES else "its header is too long") from why
    return Header(values, _with_bytes(named, _data_start(values, reader.at), size))


class _HeaderBytes:
    """Bytes of a header, read from the first on."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, many: int) -> bytes:
        if many > len(self.data) - self.at:
            raise EOFError
        self.at += many
        return self.data[self.at - many : self.at]

    def number(self, layout: Layout) -> int:
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return int(value)

    def count(self, most: int, what: str) -> int:
        many = self.number(_COUNT)
        if many > most:
            raise UnreadGguf(f"its header has {many} {what}")
        return many

    def text(self, longest: int) -> str | None:
        """Return a text; None for one that is longer than texts here are."""
        length = self.number(_COUNT)
        taken = self.take(length)
        return taken.decode("utf-8", "replace") if length <= longest else None

    def value(self, kind: int, depth: int = 0) -> Value | None:
        if kind in _LAYOUTS:
            layout = _LAYOUTS[kind]
            (value,) = layout.unpack_from(self.data, self.at)
            self.at += layout.size
            number: int | float | bool = value
            return number
        if kind == _TEXT:
            return self.text(_LONGEST_TEXT)
        if kind != _LIST or depth > _DEEPEST:
            raise UnreadGguf(f"its header has values of an unknown type ({kind})")
        return self.list(depth)

    def list(self, depth: int) -> Value | None:
        kind, many = self.number(_KIND), self.number(_COUNT)
        if kind not in _LAYOUTS:
            if many > _MOST_LISTED:
                raise UnreadGguf(f"its header has a list of {many} values")
            for _ in range(many):
                self.value(kind, depth + 1)
            return None
        layout = _LAYOUTS[kind]
        taken = self.take(many * layout.size)
        return tuple(value for (value,) in layout.iter_unpack(taken)) if many <= _LONGEST_LIST else None

    def tensor(self) -> tuple[str, tuple[int, ...], int]:
        """Return the name of a tensor, its shape, and where its bytes begin among those of all."""
        name, dimensions = self.text(_LONGEST_NAME) or "", self.number(_KIND)
        if dimensions > _MOST_DIMENSIONS:
            raise UnreadGguf(f"its header has a tensor with {dimensions} dimensions")
        shape = tuple(self.number(_COUNT) for _ in range(dimensions))
        if any(size > _LONGEST_DIMENSION for size in shape):
            raise UnreadGguf("its header has a tensor of an impossible size")
        self.number(_KIND)
        return name, shape, self.number(_COUNT)


def _data_start(values: dict[str, Value], end: int) -> int:
    stated = values.get("general.alignment")
    aligned = stated if isinstance(stated, int) and 0 < stated <= _MOST_ALIGNED else _ALIGNMENT
    return -(-end // aligned) * aligned


def _with_bytes(named: list[tuple[str, tuple[int, ...], int]], start: int, size: int) -> tuple[Tensor, ...]:
    """Return the tensors with what each takes: from its first byte to the first of the next."""
    named.sort(key=lambda each: each[2])
    ends = [*(begin for _, _, begin in named[1:]), max(0, size - start)]
    if any(end < begin for (_, _, begin), end in zip(named, ends)):
        raise UnreadGguf("the file is truncated: tensors lie beyond its end")
    return tuple(Tensor(name, shape, end - begin) for (name, shape, begin), end in zip(named, ends))
