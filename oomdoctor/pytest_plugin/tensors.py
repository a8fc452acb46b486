"""Tensors on devices: which live, and which the frames of a traceback hold."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

_MOST_ELEMENTS, _MOST_VALUES, _DEPTH = 1000, 20_000, 4
_MOST_CAUSES = 20
_CPU = ("cpu", "meta")


class HeldTensor(NamedTuple):
    """A tensor that a local variable of a frame leads to."""

    place: str
    """file:line of the frame."""
    variable: str
    tensor: Any


def is_on_device(value: object) -> bool:
    """Return whether a value is a tensor on a device."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and issubclass(type(value), kind) and getattr(getattr(value, "device", None), "type", "cpu") not in _CPU


def device_tensors() -> list[Any]:
    """Return all tensors on devices that Python knows of. The kind is looked at first: of a million objects few are tensors."""
    kind = getattr(sys.modules.get("torch"), "Tensor", ())
    return [value for value in gc.get_objects() if issubclass(type(value), kind) and is_on_device(value)]


def tensor_title(tensor: Any) -> str:
    """Return what tells kinds of tensors apart: type of numbers and shape."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def tensor_bytes(tensor: Any) -> int:
    """Return the bytes of a tensor's numbers."""
    return int(tensor.numel() * tensor.element_size())


def tensors_of_traceback(error: BaseException) -> list[HeldTensor]:
    """Return the tensors that the frames of an exception hold, each once, where it is first seen: innermost frame first."""
    seen: set[int] = set()
    return [
        HeldTensor(f"{os.path.basename(frame.f_code.co_filename)}:{line}", name, tensor)
        for frame, line in frames_of(error)
        for name, value in list(frame.f_locals.items())
        for tensor in _tensors_in(value, seen, _DEPTH)
    ]


def frames_of(error: BaseException) -> list[tuple[FrameType, int]]:
    """Return the frames of an exception and of those that it came from, innermost first, each with its line."""
    out: list[tuple[FrameType, int]] = []
    for cause in _causes(error):
        own, trace = [], cause.__traceback__
        while trace is not None:
            own.append((trace.tb_frame, trace.tb_lineno))
            trace = trace.tb_next
        out += reversed(own)
    return out


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, those that it came from, and those of a group."""
    waiting, seen = [error], 0
    while waiting and seen < _MOST_CAUSES:
        cause = waiting.pop()
        seen += 1
        yield cause
        waiting += [other for other in (cause.__cause__, cause.__context__) if other is not None]
        waiting += getattr(cause, "exceptions", ())


def _tensors_in(value: object, seen: set[int], depth: int) -> Iterator[Any]:
    """Yield the tensors that a value leads to: itself, in containers, or in the attributes of an object."""
    if value is None or id(value) in seen or len(seen) > _MOST_VALUES:
        return
    if is_on_device(value):
        seen.add(id(value))
        yield value
    elif depth and isinstance(value, (list, tuple, dict, set)):
        seen.add(id(value))
        inner = value.values() if isinstance(value, dict) else value
        for element in list(inner)[:_MOST_ELEMENTS]:
            yield from _tensors_in(element, seen, depth - 1)
    elif depth and not isinstance(value, (type, FrameType, ModuleType, FunctionType, BaseException)):
        seen.add(id(value))
        yield from _tensors_in(_attributes(value), seen, depth - 1)


def _attributes(value: object) -> object:
    """Return the attributes of an object, without running code of its class."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
