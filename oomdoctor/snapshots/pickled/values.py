"""What a pickle of a snapshot gives beside plain values: lists whose trace entries stand in columns, and stacks by number."""

from __future__ import annotations

from array import array
from typing import Protocol


class PickledList(list[object]):
    """A list. The entries of a trace in it are no values of it, but stand in `rows`, one behind the other."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        super().__init__()
        self.rows: array[int] | None = None


class StackNumber(int):
    """A list of frames that was read before, as the number of its stack."""

    __slots__ = ()


class Taker(Protocol):
    """Who takes what is read, while it is read."""

    def row(self, entry: dict[str, object]) -> tuple[int, ...]:
        """Return the columns of a trace's entry; none where it lacks what it must have."""

    def segment(self, value: dict[str, object]) -> object:
        """Return what is kept of a segment."""

    def frame(self, value: object) -> int:
        """Return the number of a frame."""

    def stack(self, frames: object) -> int:
        """Return the number of a list of frames."""

    def stack_of(self, frames: list[int]) -> int:
        """Return the number of the stack of frames by their numbers."""
