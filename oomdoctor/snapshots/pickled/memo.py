"""What a pickle keeps under numbers and asks for again: texts, dicts, and lists of frames as the numbers of their stacks."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from oomdoctor.snapshots.opcodes import memo_number, memo_numbers
from oomdoctor.snapshots.pickled.values import StackNumber, Taker

_MOST_LISTS = 1 << 12
_TEXT = 0x8C
"""The opcode of a text that stands there."""


class Memo:
    """The values that were kept. Those that were read by a pattern have numbers, too, but of them only stacks can be asked for."""

    def __init__(self, taker: Taker) -> None:
        self._taker = taker
        self._values: dict[int, object] = {}
        self.count = 0
        self.text_at: dict[str, int] = {}
        self._stack_at = array("I")
        """By number, one more than the stack; 0 where there is none."""
        self._frame_at = _Frames(self._values, taker)
        self._by_frames: dict[bytes, int] = {}

    def get(self, number: int) -> object:
        """Return what was kept; of what was read by a pattern a stack, or None, as nobody asks for anything else."""
        if number in self._values:
            return self._values[number]
        if number >= self.count:
            raise KeyError(f"nothing was kept as {number}")
        known = self._stack_at[number] if number < len(self._stack_at) else 0
        return StackNumber(known - 1) if known else None

    def get_each(self, numbers: Sequence[int]) -> list[object]:
        """Return what was kept under some numbers."""
        try:
            return list(map(self._values.__getitem__, numbers))
        except KeyError:
            return list(map(self.get, numbers))

    def keep(self, number: int, value: object) -> None:
        """Keep a value. Numbers rise one by one."""
        if number > self.count:
            raise ValueError(f"something is kept as {number}, before {self.count}")
        self._values[number] = value
        self.count = max(self.count, number + 1)
        if type(value) is str:
            self.text_at[value] = number

    def keep_text(self, number: int, text: str) -> None:
        """Keep a text of a dict that is read by a pattern; it counts once the whole dict does."""
        self._values[number] = text

    def text(self, token: bytes) -> str | None:
        """Return a text that stands there, or was kept."""
        if token[0] == _TEXT:
            return token[2:].decode()
        text = self._values.get(memo_number(token))
        return text if type(text) is str else None

    def kept_stack(self, number: int) -> int:
        """Return the stack of a list of frames that was kept."""
        known = self._stack_at[number] if number < len(self._stack_at) else 0
        if not known:
            known = 1 + self._taker.stack(self._values[number])
            self.keep_stack(number, known - 1)
        return known - 1

    def keep_stack(self, number: int, stack: int) -> None:
        """Keep a list of frames, of which only the stack is known."""
        missing = number + 1 - len(self._stack_at)
        if missing > 0:
            self._stack_at.frombytes(bytes(self._stack_at.itemsize * (missing + len(self._stack_at) // 8)))
        self._stack_at[number] = stack + 1

    def new_stack(self, gets: bytes) -> int:
        """Return the stack of frames that opcodes, one behind the other, take from the memo."""
        stack = self._by_frames.get(gets)
        if stack is None:
            stack = self._taker.stack_of("".join(map(self._frame_at.__getitem__, memo_numbers(gets))))
            if len(self._by_frames) < _MOST_LISTS:
                self._by_frames[gets] = stack
        return stack


class _Frames(dict[int, str]):
    """The character of a frame by its number in the memo, looked up when it is first asked for."""

    def __init__(self, values: dict[int, object], taker: Taker) -> None:
        super().__init__()
        self._values, self._taker = values, taker

    def __missing__(self, number: int) -> str:
        frame = self[number] = self._taker.frame(self._values[number])
        return frame
