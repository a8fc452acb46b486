"""The stacks of a recording, packed: a long trace has hundreds of thousands of them, made of a few thousand frames."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar, cast, overload

_Told = TypeVar("_Told")
_FIRST = 2
"""Numbers below are left to frames that are not of Python."""


NO_STACK = 0
"""The number of the stack that nobody recorded."""


class PythonFrame(NamedTuple):
    """One line of Python that a request came through."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.function}"


class Stack(NamedTuple):
    """The frames of Python behind a request, innermost first, and whether autograd's thread made it (only C++ frames tell)."""

    frames: tuple[PythonFrame, ...] = ()
    in_backward: bool = False
    category: str | None = None
    """What the profiler says that it holds: an entry of rules/holdings.yaml."""


class Stacks(Sequence[Stack]):
    """Stacks by number; number 0 is the one that nobody recorded. Equal ones have one number."""

    def __init__(self) -> None:
        self.frames = [PythonFrame("", 0, "")] * _FIRST
        """By number; the first two stand for those that are not of Python."""
        self._frame_numbers: dict[PythonFrame, int] = {}
        self._packed: list[bytes] = []
        self._wide: set[int] = set()
        self._special: dict[int, tuple[bool, str | None]] = {}
        self._numbers: dict[object, int] = {}
        self._tables: dict[object, list[object]] = {}
        self.add(())

    def frame(self, frame: PythonFrame) -> int:
        """Return the number of a frame."""
        number = self._frame_numbers.setdefault(frame, len(self.frames))
        if number == len(self.frames):
            self.frames.append(frame)
        return number

    def add(self, frames: Iterable[int], *, in_backward: bool = False, category: str | None = None) -> int:
        """Return the number of the stack of these frames, innermost first, by their numbers."""
        numbers = list(frames)
        is_wide = False
        try:
            packed = array("H", numbers).tobytes()  # two bytes are enough for most recordings
        except OverflowError:
            packed, is_wide = array("I", numbers).tobytes(), True
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
        return self.add(self.numbers(number), in_backward=self.origin(number)[0], category=category)

    def from_outside(self, number: int, depth: int) -> PythonFrame | None:
        """Return the frame of a stack that has so many around it; None where it has fewer frames."""
        numbers = self.numbers(number)
        return self.frames[numbers[-1 - depth]] if depth < len(numbers) else None

    def innermost(self, number: int) -> PythonFrame | None:
        """Return the frame of a stack that asked; None where it has none."""
        numbers = self.numbers(number)
        return self.frames[numbers[0]] if numbers else None

    def first(self, number: int, accepted: Callable[[PythonFrame], object]) -> PythonFrame | None:
        """Return the innermost frame of a stack for which this is true; None where there is none."""
        at = next(filter(self.table(accepted).__getitem__, self.numbers(number)), None)
        return None if at is None else self.frames[at]

    def table(self, tell: Callable[[PythonFrame], _Told]) -> Sequence[_Told]:
        """Return what this tells of each frame, by number; to be asked for when no more are added."""
        known = self._tables.get(tell)
        if known is None:
            known = self._tables[tell] = list(map(tell, self.frames))
        return cast("Sequence[_Told]", known)

    def numbers(self, number: int) -> Sequence[int]:
        """Return the frames of a stack by their numbers, innermost first."""
        packed = memoryview(self._packed[number])
        return packed.cast("I") if number in self._wide else packed.cast("H")

    def origin(self, number: int) -> tuple[bool, str | None]:
        """Return whether autograd's thread made a stack, and its category."""
        return self._special.get(number, (False, None))

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
        frames = tuple(map(self.frames.__getitem__, self.numbers(number)))
        return Stack(frames, *self.origin(number))
