"""Messages that name a shape and a dtype: the exact size is their product, which is more precise than the rounded text.

Sources: numpy _core/_exceptions.py; tensorflow core/framework/op_kernel.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match
from oomdoctor.units import parse_size

_DTYPE = r"\[\([^\n]{1,400}?\)\]|\[\([^\n]{1,400}|\{'[^\n]{1,400}?\}|[<>|=\w]{1,30}(?:\[\w{1,6}\])?"
"""A plain dtype, one with a time unit, or a structured one: a list of fields, or a dict of them; complete or truncated."""
_NUMPY = re.compile(
    r"Unable\s+to\s+allocate\s+(?P<size>\d[\d.]{0,12}\s[KMGTPE]?i?[Bb](?:ytes)?|\d{1,20}\sbytes)\s+for\s+an\s+array\s+with\s+"
    rf"shape\s+(?P<shape>\([\d, L]{{0,200}}\))\s+and\s+data\s+type\s+(?P<dtype>{_DTYPE})"
)
_NUMPY_1_17 = re.compile(
    r"Unable\s+to\s+allocate\s+array\s+with\s+shape\s+(?P<shape>\([\d, L]{0,200}\))\s+and\s+data\s+type\s+"
    rf"(?P<dtype>{_DTYPE})"
)
_TENSORFLOW = re.compile(
    r"OOM\s+when\s+allocating\s+tensor\s+with\s+shape\s?(?P<shape>\[[\d,]{0,200}\])(?:\s+and\s+type\s+(?P<dtype>\w{1,20}))?"
    r"(?:\s+on\s+(?P<device>/job:\S{1,120}?))?(?:\s+by\s+allocator\s+(?P<allocator>\w{1,60}))?(?=[\s\[.,\"'{]|$)"
)
_OP = re.compile(r"\[Op:(\w{1,80})\]")
_DEVICE = re.compile(r"device:(?!CPU)[A-Z]{2,5}:(\d{1,3})|\bGPU_(\d{1,3})_bfc")
_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "float8": 1, "|u1": 1, "|b1": 1, "int16": 2, "uint16": 2, "float16": 2, "half": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "float": 4, "int64": 8, "uint64": 8, "float64": 8, "double": 8, "complex64": 8,
    "datetime64[ns]": 8, "timedelta64[ns]": 8, "complex128": 16, "float128": 16, "longdouble": 16,
}  # fmt: skip


def parse(text: str) -> Iterator[Match]:
    """Yield every such message in `text`."""
    for message in _NUMPY.finditer(text):
        fields: dict[str, Value] = {"shape": message["shape"], "dtype": message["dtype"]}
        size = _product(message["shape"], message["dtype"]) or parse_size(message["size"])
        if size is not None:
            fields["requested_bytes"] = size
        name = (
            "numpy-memory-error-2x" if "numpy._core" in text[max(0, message.start() - 80) : message.start()] else "numpy-array-memory-error"
        )
        yield Match(name, message.start(), message.end(), fields)
    for message in _NUMPY_1_17.finditer(text):
        fields = {"shape": message["shape"], "dtype": message["dtype"]}
        size = _product(message["shape"], message["dtype"])
        if size is not None:
            fields["requested_bytes"] = size
        yield Match("numpy-memory-error-117", message.start(), message.end(), fields)
    for message in _TENSORFLOW.finditer(text):
        yield _tensorflow(text, message)


def _tensorflow(text: str, message: re.Match[str]) -> Match:
    fields: dict[str, Value] = {"shape": message["shape"]}
    for name in ("dtype", "device", "allocator"):
        if message[name]:
            fields[name] = message[name]
    size = _product(message["shape"], message["dtype"] or "float")
    if size is not None and message["dtype"]:
        fields["requested_bytes"] = size
    op = _OP.search(text, message.end(), message.end() + 80)
    if op:
        fields["op"] = op[1]
    device = _DEVICE.search(message[0])
    if device:
        fields["gpu_index"] = int(device[1] or device[2])
    on_host = "device:CPU" in message[0] or re.search(r"allocator\s+(?:cpu|mklcpu)", message[0])
    return Match("tf-oom-cpu-allocator" if on_host else "tf-oom-tensor-shape", message.start(), message.end(), fields)


def _product(shape: str, dtype: str) -> int | None:
    """Return the bytes of an array; None if the dtype is not a plain one."""
    width = _BYTES.get(dtype)
    numbers = [int(length) for length in re.findall(r"\d{1,15}", shape)][:32]
    if width is None:
        return None
    size = width
    for number in numbers:
        size *= number
    return size if size < 1 << 70 else None
