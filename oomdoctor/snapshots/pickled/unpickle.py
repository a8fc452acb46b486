"""The opcodes of a pickle -> plain values, piece by piece, the entries of traces straight into columns.

Only opcodes that make plain values are known here, so nothing in a file can be named, called or built. Most bytes of a snapshot are
entries and blocks that look like the one before: these are read by its pattern, and all else opcode by opcode.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable
from typing import Protocol

from oomdoctor.snapshots.opcodes import PROTOCOLS, NotReadable, memo_number, memo_numbers, whole_number
from oomdoctor.snapshots.pickled.pattern import DictPattern, pattern_of, signature
from oomdoctor.snapshots.pickled.values import PickledList, StackNumber, Taker
from oomdoctor.snapshots.recording import ACTIONS, Action

_PIECE = 1 << 20
_AHEAD = 1 << 18
"""So many bytes are there, at least, where an opcode or an entry is read."""
_END = b"\xff" * 16
"""Behind the last byte; this is no opcode, and no fixed one is longer."""
_DEEPEST = 64
_MOST_PATTERNS = 16
_MOST_SEEN = 1 << 14
_DAMAGE = (IndexError, KeyError, ValueError, TypeError, UnicodeDecodeError, struct.error)
_MEMOIZE, _NOTHING = b"\x94", b"K\0"
"""The opcode that keeps the last value under the next number, and the one of a 0, which stands for a column that a pattern lacks."""


class ByteSource(Protocol):
    """What bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most so many bytes; none at the end."""


class Unpickler:
    """One pickle."""

    def __init__(self, source: ByteSource, taker: Taker) -> None:
        self._source, self._taker = source, taker
        self._data, self._at, self._before, self._last = b"", 0, 0, -1
        self._end: int | None = None
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}
        self._kept = 0
        self._text_at: dict[str, int] = {}
        self._stack_at = array("I")
        self._frame_at = _Frames(self._memo, taker)
        self._by_frames: dict[bytes, int] = {}
        self._actions: dict[bytes, int] = {}
        self._numbers = _Numbers()
        self._patterns: list[DictPattern] = []
        self._seen: set[tuple[object, ...]] = set()
        self._opcodes: dict[int, Callable[[], None]] = {opcode[0]: getattr(self, name) for opcode, name in _OPCODES.items()}

    def load(self) -> object:
        """Return the value. Raise NotReadable at the first byte that is none of a pickle of plain values."""
        self._read_on()
        if len(self._data) < 3 or self._data[:1] != b"\x80" or self._data[1] not in PROTOCOLS:
            raise NotReadable("it does not begin as a pickle of protocol 2 to 5")
        self._at = 2
        opcodes = self._opcodes
        try:
            while True:
                if self._at > self._last:
                    self._read_on()
                act = opcodes.get(self._data[self._at])
                if act is None:
                    if self._data[self._at] == 0x2E and self._at != self._end:
                        return self._stack[-1]
                    raise self._refused()
                act()
        except _DAMAGE as error:
            raise NotReadable(f"its opcodes do not fit together at byte {self._before + self._at}: {error}") from None

    def so_far(self) -> dict[str, object]:
        """Return the items of the outermost dict that are whole, where the pickle is cut off or damaged."""
        begin, end = (*self._marks[:2], len(self._stack), len(self._stack))[:2]
        items = self._stack[begin:end]
        whole = (len(items) - 1) // 2  # what another key follows is whole
        return {key: value for key, value in zip(items[: 2 * whole : 2], items[1 : 2 * whole : 2], strict=True) if isinstance(key, str)}

    def _refused(self) -> NotReadable:
        at = self._before + self._at
        if self._end is not None and self._at >= self._end:
            return NotReadable(f"it is cut off at byte {self._before + self._end}")
        return NotReadable(f"the opcode {self._data[self._at : self._at + 1]!r} at byte {at} is none that a snapshot has")

    def _read_on(self, least: int = _AHEAD) -> None:
        """Drop what was read, and read on until more bytes are there than `least`; raise where the last opcode reached behind the end."""
        if self._end is not None:
            raise self._refused()
        self._before += self._at
        pieces, length = [self._data[self._at :]], len(self._data) - self._at
        self._at = 0
        while length <= max(least, _AHEAD):
            piece = self._source.read(_PIECE)
            pieces.append(piece or _END)
            if not piece:
                self._end = self._last = length
                break
            length += len(piece)
            self._last = length - _AHEAD
        self._data = b"".join(pieces)

    # Numbers, texts and constants

    def _integer(self) -> None:
        data, at = self._data, self._at
        length = {0x4B: 2, 0x4D: 3, 0x4A: 5}.get(data[at])
        if length is None:
            digits = data[at + 1]
            if not 0 < digits <= 9 or (digits == 9 and data[at + 10]):
                raise ValueError("a number of more than 64 bits")
            length = 2 + digits
        self._stack.append(whole_number(data[at : at + length]))
        self._at = at + length

    def _float(self) -> None:
        self._stack.append(struct.unpack_from(">d", self._data, self._at + 1)[0])
        self._at += 9

    def _short_text(self) -> None:
        begin = self._at + 2
        end = begin + self._data[begin - 1]
        if self._end is not None and end > self._end:
            self._at = end
            return
        self._stack.append(self._data[begin:end].decode())
        self._at = end

    def _text(self) -> None:
        length = memo_number(self._data[self._at : self._at + 5])
        if self._end is None and self._at + 5 + length > len(self._data):
            self._read_on(5 + length)
        if self._end is not None and self._at + 5 + length > self._end:
            raise NotReadable(f"a text at byte {self._before + self._at} is longer than the file")
        self._stack.append(self._data[self._at + 5 : self._at + 5 + length].decode())
        self._at += 5 + length

    def _constant(self) -> None:
        self._stack.append({0x4E: None, 0x88: True, 0x89: False}[self._data[self._at]])
        self._at += 1

    def _pair(self) -> None:
        second, first = self._stack.pop(), self._stack.pop()
        if type(first) is not int or type(second) is not int:
            raise TypeError("a pair that is not of two numbers")
        self._stack.append((first, second))
        self._at += 1

    def _empty_tuple(self) -> None:
        self._stack.append(())
        self._at += 1

    def _frame(self) -> None:
        self._at += 9

    # The memo

    def _short_get(self) -> None:
        self._get(self._data[self._at + 1])
        self._at += 2

    def _long_get(self) -> None:
        self._get(memo_number(self._data[self._at : self._at + 5]))
        self._at += 5

    def _get(self, number: int) -> None:
        if number in self._memo:
            self._stack.append(self._memo[number])
        elif number >= self._kept:
            raise KeyError(f"nothing was kept as {number}")
        else:  # part of what was read by a pattern: a list of frames, or nothing that anybody asks for
            known = self._stack_at[number] if number < len(self._stack_at) else 0
            self._stack.append(StackNumber(known - 1) if known else None)

    def _memoize(self) -> None:
        self._keep(self._kept, self._stack[-1])
        self._at += 1

    def _short_put(self) -> None:
        self._keep(self._data[self._at + 1], self._stack[-1])
        self._at += 2

    def _long_put(self) -> None:
        self._keep(memo_number(self._data[self._at : self._at + 5]), self._stack[-1])
        self._at += 5

    def _keep(self, number: int, value: object) -> None:
        if number > self._kept:
            raise ValueError(f"something is kept as {number}, before {self._kept}")
        self._memo[number] = value
        self._kept = max(self._kept, number + 1)
        if type(value) is str:
            self._text_at[value] = number

    # Containers

    def _mark(self) -> None:
        if len(self._marks) >= _DEEPEST:
            raise ValueError("it is nested deeper than any snapshot")
        self._marks.append(len(self._stack))
        self._at += 1

    def _list(self) -> None:
        self._stack.append(PickledList())
        self._at += 1

    def _dict(self) -> None:
        if self._patterns and self._marks and self._marks[-1] == len(self._stack) and self._by_patterns():
            return
        self._stack.append({})
        self._at += 1

    def _append(self) -> None:
        value = self._stack.pop()
        self._into_list([value])

    def _appends(self) -> None:
        self._into_list(self._behind_mark())

    def _into_list(self, values: list[object]) -> None:
        target = self._stack[-1]
        if type(target) is not PickledList:
            raise TypeError("what is added to is no list")
        for value in values:
            self._take(target, value)
        self._at += 1

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
        self._at += 1

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
            self._learn(value)
            row = self._taker.row(value)
            target.rows = array("Q") if target.rows is None else target.rows
            target.rows.extend(row)
            value.clear()  # the memo holds on to it
        elif "total_size" in value:
            segment = self._taker.segment(value)
            if segment is not None:
                target.append(segment)
            value.clear()
        else:
            if "state" in value:
                self._learn(value)
            target.append(value)

    def _learn(self, value: dict[str, object]) -> None:
        """Make a pattern of an entry or a block, where none fits it."""
        known = signature(value)
        if known in self._seen or "category" in value or len(self._patterns) >= _MOST_PATTERNS:
            return
        self._seen.add(known)
        pattern = pattern_of(value, self._text_at)
        if pattern is not None:
            self._patterns.insert(0, pattern)

    def _by_patterns(self) -> bool:
        """Read entries and blocks as long as a pattern fits; return whether one did."""
        target, begin = self._stack[-1], self._at
        if type(target) is not PickledList:
            return False
        last = -1
        while last < self._at <= self._last:
            last = self._at
            for number, pattern in enumerate(self._patterns):
                (self._blocks if pattern.columns is None else self._entries)(pattern, target)
                if self._at > last:
                    if number:
                        self._patterns.insert(0, self._patterns.pop(number))
                    break
        return self._at > begin

    def _entries(self, pattern: DictPattern, target: PickledList) -> None:
        """Read the entries of a trace that a pattern fits; a million of them come through here."""
        rows = target.rows = array("Q") if target.rows is None else target.rows
        fits, data, columns = pattern.expression.match, self._data, pattern.columns
        actions, numbers = self._actions, self._numbers
        while self._at <= self._last and (match := fits(data, self._at)) is not None:
            groups = match.groups()
            action, address, size, stream, time = [groups[column] or _NOTHING for column in columns or ()]
            code = actions.get(action)
            if code is None:
                code = self._action(action)
            kept, list_at = self._kept_by(pattern, groups)
            if code < 0 or kept < 0 or self._is_beyond(match):
                return
            stack = 0 if pattern.frames is None else self._stack_in(groups, pattern.frames, list_at)
            try:
                rows.fromlist([code, numbers[address], numbers[size], numbers[stream], stack, whole_number(time)])
            except OverflowError:
                return
            self._kept = kept
            self._at = match.end()

    def _blocks(self, pattern: DictPattern, target: PickledList) -> None:
        """Read the blocks of a segment that a pattern fits."""
        while self._at <= self._last and (match := pattern.expression.match(self._data, self._at)) is not None:
            groups = match.groups()
            texts = {key: self._text_of(groups[group] or _NOTHING) for key, group in pattern.texts.items()}
            kept, list_at = self._kept_by(pattern, groups)
            if kept < 0 or self._is_beyond(match):
                return
            stack = 0 if pattern.frames is None else self._stack_in(groups, pattern.frames, list_at)
            sizes = {key: whole_number(groups[group] or _NOTHING) for key, group in pattern.numbers.items()}
            target.append({**texts, **sizes, "frames": StackNumber(stack)})
            self._kept = kept
            self._at = match.end()

    def _is_beyond(self, match: re.Match[bytes]) -> bool:
        return self._end is not None and match.end() > self._end

    def _action(self, token: bytes) -> int:
        """Return the number of an action; one below 0 for what is read opcode by opcode: a failure has other columns."""
        text = self._text_of(token)
        action = -1 if text is None else ACTIONS.get(text, Action.OTHER)
        self._actions[token] = -1 if action == Action.OOM else int(action)
        return self._actions[token]

    def _kept_by(self, pattern: DictPattern, groups: tuple[bytes | None, ...]) -> tuple[int, int]:
        """Return how many things are kept then, and the number of its list; -1 where there is none, or numbers leap."""
        kept, list_at = self._kept, -1
        for group in pattern.puts:
            put = groups[group]
            if put is not None:
                if put != _MEMOIZE and memo_number(put) != kept:
                    return -1, -1
                if group == pattern.list_put:
                    list_at = kept
                elif group in pattern.literals:
                    self._memo[kept] = pattern.literals[group]
                kept += 1
        return kept, list_at

    def _text_of(self, token: bytes) -> str | None:
        """Return a text that was kept, or stands there."""
        if token[0] == 0x8C:
            return token[2:].decode()
        text = self._memo.get(memo_number(token))
        return text if type(text) is str else None

    def _stack_in(self, groups: tuple[bytes | None, ...], begin: int, list_at: int) -> int:
        """Return the number of the stack in the groups of a pattern from `begin` on."""
        known = groups[begin]
        if known is not None:
            return self._known_stack(memo_number(known))
        frames = groups[begin + 2] or groups[begin + 3] or b""
        stack = self._by_frames.get(frames)
        if stack is None:
            stack = self._taker.stack_of(list(map(self._frame_at.__getitem__, memo_numbers(frames))))
            if len(self._by_frames) < _MOST_SEEN:
                self._by_frames[frames] = stack
        if list_at >= 0:
            self._note_stack(list_at, stack)
        return stack

    def _known_stack(self, number: int) -> int:
        known = self._stack_at[number] if number < len(self._stack_at) else 0
        if not known:
            known = 1 + self._taker.stack(self._memo[number])
            self._note_stack(number, known - 1)
        return known - 1

    def _note_stack(self, number: int, stack: int) -> None:
        missing = number + 1 - len(self._stack_at)
        if missing > 0:
            self._stack_at.frombytes(bytes(self._stack_at.itemsize * (missing + len(self._stack_at) // 8)))
        self._stack_at[number] = stack + 1


class _Numbers(dict[bytes, int]):
    """The numbers that opcodes of integers stand for: an address comes again when it is freed."""

    def __missing__(self, token: bytes) -> int:
        if len(self) > _MOST_SEEN:
            self.clear()
        number = self[token] = whole_number(token)
        return number


class _Frames(dict[int, int]):
    """The number of a frame by its number in the memo, looked up when it is first asked for."""

    def __init__(self, memo: dict[int, object], taker: Taker) -> None:
        super().__init__()
        self._memo, self._taker = memo, taker

    def __missing__(self, number: int) -> int:
        frame = self[number] = self._taker.frame(self._memo[number])
        return frame


_OPCODES = {
    b"K": "_integer", b"M": "_integer", b"J": "_integer", b"\x8a": "_integer", b"G": "_float", b"\x8c": "_short_text", b"X": "_text",
    b"N": "_constant", b"\x88": "_constant", b"\x89": "_constant", b"\x86": "_pair", b")": "_empty_tuple", b"\x95": "_frame",
    b"h": "_short_get", b"j": "_long_get", b"\x94": "_memoize", b"q": "_short_put", b"r": "_long_put",
    b"(": "_mark", b"]": "_list", b"}": "_dict", b"a": "_append", b"e": "_appends", b"s": "_set_item", b"u": "_set_items",
}  # fmt: skip
