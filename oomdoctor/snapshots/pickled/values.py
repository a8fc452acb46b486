"""What a pickle of a snapshot gives beside plain values: lists whose trace entries stand in columns, and stacks by number."""

from __future__ import annotations

from typing import Protocol

from oomdoctor.snapshots.recording import Row, Trace


class PickledList(list[object]):
    """A list. The entries of a trace in it are no values of it, but stand in the columns of `trace`."""

    __slots__ = ("trace",)

    def __init__(self) -> None:
        super().__init__()
        self.trace: Trace | None = None


class StackNumber(int):
    """A list of frames that was read before, as the number of its stack."""

    __slots__ = ()


class Taker(Protocol):
    """Who takes what is read, while it is read."""

    def row(self, entry: dict[str, object]) -> Row | None:
        """Return the columns of a trace's entry; None where it lacks what it must have."""

    def segment(self, value: dict[str, object]) -> object:
        """Return what is kept of a segment."""

    def frame(self, value: object) -> str:
        """Return the character of a frame; none for most that are not of Python."""

    def stack(self, frames: object) -> int:
        """Return the number of a list of frames."""

    def stack_of(self, frames: str) -> int:
        """Return the number of the stack of frames by their characters."""
