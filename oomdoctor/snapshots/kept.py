"""What forward passes left on a card: how many blocks of how many call paths, and the one path that holds most of them.

With gradients each operation of each layer keeps something for the backward pass: many paths. Without them a pass leaves nothing but
its result: where one path holds many blocks then, the program keeps the results of one batch after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from oomdoctor.parse.traceback import phase_of
from oomdoctor.snapshots.replay import LiveBlock
from oomdoctor.snapshots.sites import UNKNOWN, Categories, is_of_library
from oomdoctor.snapshots.stacks import PythonFrame, Stacks

_COMPUTED = frozenset(("activations", "attention", "logits", "sampling", "collected-predictions", UNKNOWN))
"""What forward passes leave (rules/holdings.yaml)."""
_CALLED = frozenset(("_call_impl", "_wrapped_call_impl"))
"""The frames below which a module computes (torch/nn/modules/module.py)."""
_NO_GRADIENTS = "decorate_context"
"""The frame of `@torch.no_grad()` and `@torch.inference_mode()` (torch/utils/_contextlib.py)."""
_CHECKPOINTED = "torch/utils/checkpoint.py"
_WORTH = 0.01


class Kept(Struct, frozen=True):
    """What forward passes left at a moment, and the call path that holds most of it."""

    size: int
    """Of all paths."""
    blocks: int
    paths: int
    """Call paths that hold a hundredth of it each, at least."""
    most: int
    """Of the path that holds most."""
    most_blocks: int
    site: str
    """Where that path calls the model; where it calls none, the innermost line of the user."""
    phase: str | None
    """What the program was doing there, by the functions of the path: `evaluation`, `generation`, `forward`."""
    without_gradients: bool
    """Whether a frame of that path switches gradients off."""
    is_checkpointed: bool
    """Whether it is what gradient checkpointing keeps of each layer."""


def kept(live: Mapping[int, LiveBlock], stacks: Stacks, categories: Categories) -> Kept | None:
    """Return what forward passes left among the blocks that live; None where no frames tell of any."""
    paths: dict[int, list[int]] = {}
    for block in live.values():
        if stacks.has_frames(block.stack) and categories.of(block.stack, block.born) in _COMPUTED:
            sums = paths.setdefault(block.stack, [0, 0])
            sums[0] += block.requested
            sums[1] += 1
    if not paths:
        return None
    size = sum(held for held, _ in paths.values())
    stack = max(paths, key=lambda path: paths[path])
    frames = stacks[stack].frames
    return Kept(
        size=size,
        blocks=sum(blocks for _, blocks in paths.values()),
        paths=sum(held >= _WORTH * size for held, _ in paths.values()),
        most=paths[stack][0],
        most_blocks=paths[stack][1],
        site=str(_caller(frames)),
        phase=phase_of("\n".join(map(_as_printed, frames)).encode("utf-8", "replace")),
        without_gradients=any(frame.function == _NO_GRADIENTS for frame in frames),
        is_checkpointed=any(_CHECKPOINTED in frame.file for frame in frames),
    )


def _as_printed(frame: PythonFrame) -> str:
    return f'File "{frame.file}", line {frame.line}, in {frame.function}'


def _caller(frames: Sequence[PythonFrame]) -> PythonFrame:
    """Return the line that keeps the result, as far as frames show it: the first of the user outside of all modules."""
    called = max((at for at, frame in enumerate(frames) if frame.function in _CALLED), default=-1)
    outside = [frame for frame in frames[called + 1 :] if not is_of_library(frame.file)]
    own = outside or [frame for frame in frames if not is_of_library(frame.file)]
    return own[0] if own else frames[0]
