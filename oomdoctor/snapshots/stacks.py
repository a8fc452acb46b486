"""The stacks of a recording, packed: a long trace has hundreds of thousands of them, made of a few thousand frames."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

from oomdoctor.snapshots.recording import PythonFrame, Stack

_NARROW = (1 << 16) - 1
"""The largest number of a frame that two bytes hold: few recordings have more."""
_FIRST = 2
"""Numbers below are left to frames that are not of Python."""


class Stacks(Sequence[Stack]):
    """Stacks by number; number 0 is the one that nobody recorded. Equal ones have one number."""

    def __init__(self) -> None:
        self._frames = [PythonFrame("", 0, "")] * _FIRST
        self._frame_numbers: dict[PythonFrame, int] = {}
        self._packed: list[bytes] = []
        self._wide: set[int] = set()
        self._special: dict[int, tuple[bool, str | None]] = {}
        self._numbers: dict[object, int] = {}
        self.add(())

    def frame(self, frame: PythonFrame) -> int:
        """Return the number of a frame."""
        number = self._frame_numbers.setdefault(frame, len(self._frames))
        if number == len(self._frames):
            self._frames.append(frame)
        return number

    def add(self, frames: Iterable[int], *, in_backward: bool = False, category: str | None = None) -> int:
        """Return the number of the stack of these frames, innermost first, by their numbers."""
        numbers = array("I", frames)
        is_wide = max(numbers, default=0) > _NARROW
        packed = numbers.tobytes() if is_wide else array("H", numbers).tobytes()
        key = (packed, is_wide, in_backward, category) if is_wide or in_backward or category is not None else packed
        number = self._numbers.setdefault(key, len(self._packed))
        if number == len(self._packed):
            self._packed.append(packed)
            if in_backward or category is not None:
                self._special[number] = (in_backward, category)
            if is_wide:
                self._wide.add(number)
        return number

    def with_category(self, number: int, category: str | None) -> int:
        """Return the number of the same stack with what a profiler says that it holds."""
        return self.add(self._of(number), in_backward=self[number].in_backward, category=category)

    def from_outside(self, number: int, depth: int) -> PythonFrame | None:
        """Return the frame of a stack that has so many around it; None where it has fewer frames."""
        frames = self._of(number)
        return self._frames[frames[-1 - depth]] if depth < len(frames) else None

    def _of(self, number: int) -> memoryview[int]:
        packed = memoryview(self._packed[number])
        return packed.cast("I") if number in self._wide else packed.cast("H")

    def finish(self) -> None:
        """Add no more: what only that needs is given up."""
        self._numbers = {}

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, number: int) -> Stack: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Stack]: ...
    def __getitem__(self, number: int | slice) -> Stack | Sequence[Stack]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        frames = tuple(map(self._frames.__getitem__, self._of(number)))
        return Stack(frames, *self._special.get(number, ()))


def from_outside(stacks: Sequence[Stack], number: int, depth: int) -> PythonFrame | None:
    """Return the frame of a stack that has so many around it; None where it has fewer frames."""
    if isinstance(stacks, Stacks):
        return stacks.from_outside(number, depth)
    frames = stacks[number].frames
    return frames[-1 - depth] if depth < len(frames) else None
