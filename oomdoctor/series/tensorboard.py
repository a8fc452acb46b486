"""TensorBoard's event files: records of TFRecord (u64 length, u32 checksum, data, u32 checksum), each a protobuf Event.

tensorflow/core/util/event.proto: wall_time 1 (double), step 2 (varint), summary 5; summary.proto: value 1 = {tag 1, simple_value 2 (float),
tensor 8}; tensor.proto: tensor_content 4, float_val 5, double_val 6, dtype 1. Checksums are not checked: a damaged record ends the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oomdoctor.series.builder import SeriesBuilder
from oomdoctor.series.comma_tables import NO_MEMORY
from oomdoctor.series.names import read_name

_LENGTH = struct.Struct("<QI")
_LONGEST_RECORD = 8 << 20
_LONGEST_TAG = 200
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_Field = tuple[int, "int | float | bytes"]


def is_event_file(data: bytes) -> bool:
    """Return whether bytes begin with a record whose first field is the time of an Event."""
    if len(data) < _LENGTH.size + 9:
        return False
    length, _ = _LENGTH.unpack_from(data)
    return 9 <= length <= _LONGEST_RECORD and data[_LENGTH.size] == 0x09


def read_event_file(data: bytes, builder: SeriesBuilder) -> str | None:
    """Read the scalars whose tags are memory; return None, or why they say nothing."""
    tags: set[str] = set()
    for record in _records(data):
        fields = list(_fields(record))
        time = next((value for number, value in fields if number == _WALL_TIME and isinstance(value, float)), None)
        step = next((value for number, value in fields if number == _STEP and isinstance(value, int)), 0)
        for number, summary in fields:
            if number == _SUMMARY and isinstance(summary, bytes):
                for tag, value in _scalars(summary):
                    metric = read_name(tag)
                    if metric is None or value < 0 or value > 1e18:
                        continue
                    tags.add(tag)
                    builder.add(
                        round(value * metric.scale), None if time is None else (time, "utc"), of=metric.of, card=metric.card, name=tag,
                        total=100_000 if metric.is_share else None, is_share=metric.is_share, step=step if step < 1 << 40 else None,
                    )  # fmt: skip
    return None if tags else NO_MEMORY


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + _LENGTH.size <= len(data):
        length, _ = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if length > _LONGEST_RECORD or at + length > len(data):
            return
        yield data[at : at + length]
        at += length + 4


def _scalars(summary: bytes) -> Iterator[tuple[str, float]]:
    """Yield the tags of a Summary with their values."""
    for number, value in _fields(summary):
        if number != 1 or not isinstance(value, bytes):
            continue
        tag, scalar = "", None
        for inner, content in _fields(value):
            if inner == 1 and isinstance(content, bytes):
                tag = content[:_LONGEST_TAG].decode("utf-8", "replace")
            elif inner == 2 and isinstance(content, float):
                scalar = content
            elif inner == 8 and isinstance(content, bytes):
                scalar = _tensor(content)
        if scalar is not None and scalar == scalar:  # noqa: PLR0124 - NaN is no figure
            yield tag, scalar


def _tensor(tensor: bytes) -> float | None:
    """Return the only number of a tensor of rank 0."""
    for number, value in _fields(tensor):
        if number in (4, 5) and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
        if number in (4, 6) and isinstance(value, bytes) and len(value) == 8:
            return float(struct.unpack("<d", value)[0])
        if number in (5, 6) and isinstance(value, float):
            return value
    return None


def _fields(data: bytes) -> Iterator[_Field]:
    """Yield the fields of a message: varints as int, fixed ones as float, the rest as bytes; what is damaged ends it."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
        elif kind == 1 and at + 8 <= len(data):
            yield number, float(struct.unpack_from("<d", data, at)[0])
            at += 8
        elif kind == 5 and at + 4 <= len(data):
            yield number, float(struct.unpack_from("<f", data, at)[0])
            at += 4
        elif kind == 2:
            length, at = _varint(data, at)
            if length > len(data) - at:
                return
            yield number, data[at : at + length]
            at += length
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and where it ends; one that is cut or too long ends the message."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return 0, len(data)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, len(data)
