"""The opcodes of a pickle -> plain values, piece by piece, the entries of traces straight into columns.

Only opcodes that make plain values are known here, so nothing in a file can be named, called or built. Most bytes of a snapshot are
entries and blocks that look like the one before: these are read by its pattern, and all else opcode by opcode.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from oomdoctor.snapshots.opcodes import PROTOCOLS, NotReadable, gets_at, memo_number, memo_numbers, whole_number
from oomdoctor.snapshots.pickled.memo import Memo
from oomdoctor.snapshots.pickled.repeated import RepeatedDicts
from oomdoctor.snapshots.pickled.values import PickledList, Taker
from oomdoctor.snapshots.pickled.window import ByteSource, PickleWindow
from oomdoctor.snapshots.recording import Trace

_DEEPEST = 64
_DAMAGE = (IndexError, KeyError, ValueError, TypeError, UnicodeDecodeError, struct.error)


class Unpickler:
    """One pickle."""

    def __init__(self, source: ByteSource, taker: Taker) -> None:
        self._window, self._memo, self._taker = PickleWindow(source), Memo(taker), taker
        self._repeated = RepeatedDicts(self._window, self._memo)
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._opcodes: dict[int, Callable[[], None]] = {opcode[0]: getattr(self, name) for opcode, name in _OPCODES.items()}

    def load(self) -> object:
        """Return the value. Raise NotReadable at the first byte that is none of a pickle of plain values."""
        window, opcodes = self._window, self._opcodes
        window.read_on()
        if len(window.data) < 3 or window.data[:1] != b"\x80" or window.data[1] not in PROTOCOLS:
            raise NotReadable("it does not begin as a pickle of protocol 2 to 5")
        window.at = 2
        try:
            while True:
                if window.at > window.last:
                    window.read_on()
                act = opcodes.get(window.data[window.at])
                if act is None:
                    if window.data[window.at] == 0x2E and window.at != window.end:
                        return self._stack[-1]
                    raise window.unreadable()
                act()
        except _DAMAGE as error:
            raise NotReadable(f"its opcodes are inconsistent at byte {window.position}: {error}") from None

    def so_far(self) -> dict[str, object]:
        """Return the items of the outermost dict that are whole, where the pickle is cut off or damaged."""
        begin, end = (*self._marks[:2], len(self._stack), len(self._stack))[:2]
        items = self._stack[begin:end]
        whole = (len(items) - 1) // 2  # what another key follows is whole
        return {key: value for key, value in zip(items[: 2 * whole : 2], items[1 : 2 * whole : 2], strict=True) if isinstance(key, str)}

    # Numbers, texts and constants

    def _integer(self) -> None:
        data, at = self._window.data, self._window.at
        length = {0x4B: 2, 0x4D: 3, 0x4A: 5}.get(data[at])
        if length is None:
            digits = data[at + 1]
            if not 0 < digits <= 9 or (digits == 9 and data[at + 10]):
                raise ValueError("a number larger than 64 bits")
            length = 2 + digits
        self._stack.append(whole_number(data[at : at + length]))
        self._window.at = at + length

    def _float(self) -> None:
        self._stack.append(struct.unpack_from(">d", self._window.data, self._window.at + 1)[0])
        self._window.at += 9

    def _short_text(self) -> None:
        begin = self._window.at + 2
        end = begin + self._window.data[begin - 1]
        if self._window.end is not None and end > self._window.end:
            self._window.at = end
            return
        self._stack.append(self._window.data[begin:end].decode())
        self._window.at = end

    def _text(self) -> None:
        length = self._long_number()
        if self._window.end is None and self._window.at + 5 + length > len(self._window.data):
            self._window.read_on(5 + length)
        if self._window.end is not None and self._window.at + 5 + length > self._window.end:
            raise NotReadable(f"a text at byte {self._window.position} is longer than the file")
        self._stack.append(self._window.data[self._window.at + 5 : self._window.at + 5 + length].decode())
        self._window.at += 5 + length

    def _constant(self) -> None:
        self._stack.append({0x4E: None, 0x88: True, 0x89: False}[self._window.data[self._window.at]])
        self._window.at += 1

    def _pair(self) -> None:
        second, first = self._stack.pop(), self._stack.pop()
        if type(first) is not int or type(second) is not int:
            raise TypeError("a pair that does not consist of two numbers")
        self._stack.append((first, second))
        self._window.at += 1

    def _empty_tuple(self) -> None:
        self._stack.append(())
        self._window.at += 1

    def _frame(self) -> None:
        self._window.at += 9

    # The memo

    def _short_get(self) -> None:
        self._stack.append(self._memo.get(self._window.data[self._window.at + 1]))
        self._window.at += 2

    def _long_get(self) -> None:
        self._stack.append(self._memo.get(self._long_number()))
        self._window.at += 5

    def _memoize(self) -> None:
        self._memo.keep(self._memo.count, self._stack[-1])
        self._window.at += 1

    def _short_put(self) -> None:
        self._memo.keep(self._window.data[self._window.at + 1], self._stack[-1])
        self._window.at += 2

    def _long_put(self) -> None:
        self._memo.keep(self._long_number(), self._stack[-1])
        self._window.at += 5

    def _long_number(self) -> int:
        return memo_number(self._window.data[self._window.at : self._window.at + 5])

    # Containers

    def _mark(self) -> None:
        if len(self._marks) >= _DEEPEST:
            raise ValueError("it is nested more deeply than any snapshot")
        self._marks.append(len(self._stack))
        self._window.at += 1
        frames = gets_at(self._window.data, self._window.at)  # a list of frames stands behind a mark
        self._stack += self._memo.get_each(memo_numbers(frames))
        self._window.at += len(frames)

    def _list(self) -> None:
        self._stack.append(PickledList())
        self._window.at += 1

    def _dict(self) -> None:
        if not self._repeated_here():
            self._stack.append({})
            self._window.at += 1

    def _repeated_here(self) -> bool:
        """Read the dicts that a list begins with by a pattern: several stand behind a mark, a single one behind the list."""
        target = self._stack[-1] if self._stack else None
        if type(target) is not PickledList:
            return False
        return (self._repeated.read if self._marks and self._marks[-1] == len(self._stack) else self._repeated.read_only)(target)

    def _append(self) -> None:
        value = self._stack.pop()
        self._into_list([value])

    def _appends(self) -> None:
        self._into_list(self._behind_mark())

    def _into_list(self, values: list[object]) -> None:
        target = self._stack[-1]
        if type(target) is not PickledList:
            raise TypeError("an append to something that is not a list")
        for value in values:
            self._take(target, value)
        self._window.at += 1

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._into_dict([key, value])

    def _set_items(self) -> None:
        self._into_dict(self._behind_mark())
        stack, value = self._stack, self._stack[-1]
        is_in_list = self._marks and self._marks[-1] == len(stack) - 1 and type(stack[-2]) is PickledList
        if is_in_list and type(value) is dict and ("action" in value or "state" in value or "total_size" in value):
            stack.pop()
            self._take(stack[-1], value)  # type: ignore[arg-type]

    def _into_dict(self, items: list[object]) -> None:
        target = self._stack[-1]
        keys = items[::2]
        if type(target) is not dict or len(items) % 2 or any(type(key) is not str for key in keys):
            raise TypeError("items that are none of a dict with texts as keys")
        target.update(zip(keys, items[1::2], strict=True))
        self._window.at += 1

    def _behind_mark(self) -> list[object]:
        mark = self._marks.pop()
        values = self._stack[mark:]
        del self._stack[mark:]
        return values

    # What is taken as it comes

    def _take(self, target: PickledList, value: object) -> None:
        """Put a value into a list: an entry of a trace into its columns."""
        if type(value) is not dict:
            target.append(value)
        elif "action" in value:
            self._repeated.learn(value)
            row = self._taker.row(value)
            target.trace = Trace() if target.trace is None else target.trace
            if row is not None:
                target.trace.append(*row)
            value.clear()  # the memo holds on to it
        elif "total_size" in value:
            segment = self._taker.segment(value)
            if segment is not None:
                target.append(segment)
            value.clear()
        else:
            if "state" in value:
                self._repeated.learn(value)
            target.append(value)


_OPCODES = {
    b"K": "_integer", b"M": "_integer", b"J": "_integer", b"\x8a": "_integer", b"G": "_float", b"\x8c": "_short_text", b"X": "_text",
    b"N": "_constant", b"\x88": "_constant", b"\x89": "_constant", b"\x86": "_pair", b")": "_empty_tuple", b"\x95": "_frame",
    b"h": "_short_get", b"j": "_long_get", b"\x94": "_memoize", b"q": "_short_put", b"r": "_long_put",
    b"(": "_mark", b"]": "_list", b"}": "_dict", b"a": "_append", b"e": "_appends", b"s": "_set_item", b"u": "_set_items",
}  # fmt: skip
