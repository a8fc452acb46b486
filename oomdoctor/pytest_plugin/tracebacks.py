"""What the traceback of a failed test keeps on a device after the test has ended.

pytest leaves the last exception in `sys`, for debuggers; its frames hold what the test's variables led to, until another test fails.
"""

from __future__ import annotations

import gc
import weakref
from contextlib import suppress
from typing import NamedTuple

from oomdoctor.pytest_plugin.devices import allocated_now, grown
from oomdoctor.pytest_plugin.tensors import frames_of, tensor_bytes, tensors_of_traceback

_SHOWN = 3


class HeldVariable(NamedTuple):
    """A local variable that kept tensors."""

    place: str
    variable: str
    bytes: int


class HeldByTraceback(NamedTuple):
    """What was freed when the frames were let go."""

    device: str
    bytes: int
    variables: tuple[HeldVariable, ...]
    """The largest first."""


def release_traceback(error: BaseException) -> HeldByTraceback | None:
    """Let go of the local variables in the frames of a failed test; return what that freed, and None where it freed nothing.

    What else holds a tensor, a fixture of the session say, keeps it, so that it is not counted.
    """
    gc.collect()
    before = allocated_now()
    held = [
        (HeldVariable(tensor.place, tensor.variable, tensor_bytes(tensor.tensor)), weakref.ref(tensor.tensor))
        for tensor in tensors_of_traceback(error)
    ]
    if not held:
        return None
    _clear(error)
    gc.collect()
    freed = grown(allocated_now(), before)
    device = max(freed, key=lambda name: freed[name])
    if freed[device] <= 0:
        return None
    sums: dict[tuple[str, str], int] = {}
    for variable, tensor in held:
        if tensor() is None:
            sums[variable[:2]] = sums.get(variable[:2], 0) + variable.bytes
    largest = sorted((HeldVariable(*names, size) for names, size in sums.items()), key=lambda variable: -variable.bytes)
    return HeldByTraceback(device, freed[device], tuple(largest[:_SHOWN]))


def _clear(error: BaseException) -> None:
    """Clear the frames of an exception. Reading `f_locals` again takes cleared variables out of the copy that some Pythons keep."""
    for frame, _ in frames_of(error):
        with suppress(RuntimeError):  # it still runs
            frame.clear()
            frame.f_locals  # noqa: B018
