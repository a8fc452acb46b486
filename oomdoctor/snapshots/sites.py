"""Whose line a request came from, and what it holds there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.snapshots.phases import LOADING_DATA, OPTIMIZER
from oomdoctor.snapshots.recording import NO_STACK, PythonFrame, Stack
from oomdoctor.snapshots.replay import LiveBlock

_LIBRARY = re.compile(r"[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python\d|[\\/]torchinductor_|^<frozen |[\\/](?:runpy|threading)\.py$")
"""Files that whoever runs the program did not write."""
_COMPUTED = {
    "optimizer-state": "optimizer states",
    "gradient-reduction": "gradient buckets",
    "weight-gathering": "gathered weights",
    "weight-placement": "weights",
    "collected-predictions": "collected predictions",
}
_PLACED = {
    "_apply", "convert", "from_pretrained", "_load_state_dict_into_meta_model", "_load_parameter_into_model", "set_module_tensor_to_device",
}  # fmt: skip
"""Functions that put weights on a card (torch/nn/modules/module.py; transformers modeling_utils.py; accelerate utils/modeling.py)."""
_FORWARD = {"forward", "_call_impl", "_wrapped_call_impl"}
BEFORE, BACKWARD, UNKNOWN = "there before the recording", "gradients and backward", "unknown"


class Holder(Struct, frozen=True):
    """What one line of a program holds at a moment."""

    site: str | None
    """The innermost frame of the user as file:line:function; None where no frame of Python was recorded."""
    frame: str | None
    """The innermost frame of all."""
    category: str
    size: int
    """Asked bytes."""
    blocks: int


def own_frame(stack: Stack) -> PythonFrame | None:
    """Return the innermost frame that is not of a library, else the innermost."""
    return next((frame for frame in stack.frames if not _LIBRARY.search(frame.file)), stack.frames[0] if stack.frames else None)


class Categories:
    """What blocks hold, told by their frames and the moment of their birth."""

    def __init__(self, stacks: Sequence[Stack], finder: ComputationFinder, phases: Sequence[tuple[int, int, str]]) -> None:
        self._stacks, self._finder, self._phases = stacks, finder, phases
        self._known: dict[int, str | None] = {}
        self._has_frames = any(stack.frames for stack in stacks)

    def of(self, block: LiveBlock) -> str:
        """Return what a block holds."""
        if block.stack not in self._known:
            self._known[block.stack] = self._by_frames(self._stacks[block.stack])
        known = self._known[block.stack]
        phase = None if block.born is None else self._phase(block.born)
        if phase == OPTIMIZER:
            return "optimizer states"
        if known is not None:
            return known
        if block.born is None and block.stack == NO_STACK:
            return BEFORE
        if phase == LOADING_DATA:
            return "data"
        return BACKWARD if block.stack == NO_STACK and self._has_frames else UNKNOWN

    def _by_frames(self, stack: Stack) -> str | None:
        if stack.in_backward:
            return BACKWARD
        if not stack.frames:
            return None
        text = "\n".join(f'  File "{frame.file}", line {frame.line}, in {frame.function}' for frame in reversed(stack.frames))
        computed = self._finder.find(text.encode("utf-8", "replace"), b"")
        if computed is not None:
            return _COMPUTED.get(computed, computed.replace("-", " "))
        functions = {frame.function for frame in stack.frames}
        return "weights" if functions & _PLACED else "activations" if functions & _FORWARD else None

    def _phase(self, position: int) -> str | None:
        return next((name for first, behind, name in self._phases if first <= position < behind), None)


def holders(live: Mapping[int, LiveBlock], stacks: Sequence[Stack], categories: Categories) -> tuple[Holder, ...]:
    """Return who holds what, the largest first; one line for each site, frame and category."""
    sums: dict[tuple[str | None, str | None, str], list[int]] = {}
    for block in live.values():
        stack = stacks[block.stack]
        own, inner = own_frame(stack), stack.frames[0] if stack.frames else None
        key = (None if own is None else str(own), None if inner is None else str(inner), categories.of(block))
        total = sums.setdefault(key, [0, 0])
        total[0] += block.requested
        total[1] += 1
    out = (Holder(*key, size, blocks) for key, (size, blocks) in sums.items())
    return tuple(sorted(out, key=lambda holder: (-holder.size, holder.site or "")))
