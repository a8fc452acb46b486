"""Entries of traces and blocks, read by the pattern of one that was read before: most bytes of a snapshot are such."""

from __future__ import annotations

import re

from oomdoctor.snapshots.opcodes import memo_number, whole_number
from oomdoctor.snapshots.pickled.memo import Memo
from oomdoctor.snapshots.pickled.pattern import MEMOIZE, DictPattern, KeptShape, pattern_of, signature
from oomdoctor.snapshots.pickled.values import PickledList, StackNumber
from oomdoctor.snapshots.pickled.window import PickleWindow
from oomdoctor.snapshots.recording import ACTIONS, MOST, Action, Trace

_MOST_PATTERNS = 16
_MOST_SEEN = 1 << 14
_APPEND = b"a"
_MISSING = b""
"""The column that a pattern lacks."""
Groups = tuple[bytes, ...]


class RepeatedDicts:
    """Reads dicts as long as a pattern fits, from a window into a list."""

    def __init__(self, window: PickleWindow, memo: Memo) -> None:
        self._window, self._memo = window, memo
        self._actions: dict[bytes, int] = {}
        self._numbers = _Numbers()
        self._patterns: list[DictPattern] = []
        self._seen: set[tuple[object, ...]] = set()

    def learn(self, value: dict[str, object]) -> None:
        """Make a pattern of an entry or a block, where none fits it."""
        known = signature(value)
        if known in self._seen or "category" in value or len(self._patterns) >= _MOST_PATTERNS:
            return
        self._seen.add(known)
        pattern = pattern_of(value, self._memo.text_at)
        if pattern is not None:
            self._patterns.insert(0, pattern)

    def read_only(self, target: PickledList) -> bool:
        """Read the only block of a segment, with the opcode that puts it into its list; return whether a pattern fits it."""
        window = self._window
        for pattern in self._patterns if window.at <= window.last else ():
            if pattern.columns is None:
                match = pattern.expression.match(window.data, window.at)
                if match is not None and window.data.startswith(_APPEND, match.end()) and self._take_block(pattern, match, target):
                    window.at += 1
                    return True
        return False

    def read(self, target: PickledList) -> bool:
        """Read as many as patterns fit; return whether there were any."""
        window, begin, last = self._window, self._window.at, -1
        while last < window.at <= window.last:
            last = window.at
            for number, pattern in enumerate(self._patterns):
                (self._blocks if pattern.columns is None else self._entries)(pattern, target)
                if window.at > last:
                    if number:
                        self._patterns.insert(0, self._patterns.pop(number))
                    break
        return window.at > begin

    def _entries(self, pattern: DictPattern, target: PickledList) -> None:
        """Read the entries of a trace that a pattern fits; a million of them come through here."""
        window, actions, numbers = self._window, self._actions, self._numbers
        data, last, end = window.data, window.last, window.end
        fits, columns, puts, shapes, frames = pattern.expression.match, pattern.columns, pattern.puts, pattern.shapes, pattern.frames
        if target.trace is None:
            target.trace = Trace()
        append = target.trace.append
        while window.at <= last and columns is not None and (match := fits(data, window.at)) is not None:
            groups = match.groups(_MISSING)
            action, address, size, stream, time = columns(groups)
            code = actions.get(action)
            if code is None:
                code = self._action(action)
            shape = shapes.get(puts(groups)) or self._shape(pattern, groups)
            behind = match.end()
            if code < 0 or shape is None or (end is not None and behind > end):
                return
            try:
                figures = numbers[address], numbers[size], numbers[stream], _figure(time)
            except OverflowError:
                return
            append(code, *figures, 0 if frames is None else self._stack_in(groups, frames, shape.list_at))
            self._keep(shape)
            window.at = behind

    def _blocks(self, pattern: DictPattern, target: PickledList) -> None:
        """Read the blocks of a segment that a pattern fits."""
        window, fits = self._window, pattern.expression.match
        while window.at <= window.last and (match := fits(window.data, window.at)) is not None:
            if not self._take_block(pattern, match, target):
                return

    def _take_block(self, pattern: DictPattern, match: re.Match[bytes], target: PickledList) -> bool:
        """Put a block into a list; return whether it could be."""
        window, memo, frames, groups = self._window, self._memo, pattern.frames, match.groups(_MISSING)
        texts = {key: memo.text(groups[group]) for key, group in pattern.texts.items()}
        shape = self._shape(pattern, groups)
        if shape is None or None in texts.values() or (window.end is not None and match.end() > window.end):
            return False
        stack = 0 if frames is None else self._stack_in(groups, frames, shape.list_at)
        sizes = {key: whole_number(groups[group]) for key, group in pattern.numbers.items()}
        target.append({**texts, **sizes, "frames": StackNumber(stack)})
        self._keep(shape)
        window.at = match.end()
        return True

    def _action(self, token: bytes) -> int:
        """Return the number of an action; one below 0 for what is read opcode by opcode: a failure has other columns."""
        text = self._memo.text(token)
        action = -1 if text is None else ACTIONS.get(text, Action.OTHER)
        self._actions[token] = -1 if action == Action.OOM else int(action)
        return self._actions[token]

    def _stack_in(self, groups: Groups, begin: int, list_at: int) -> int:
        """Return the number of the stack in the groups of a pattern from `begin` on."""
        memo, known = self._memo, groups[begin]
        if known:
            return memo.kept_stack(memo_number(known))
        stack = memo.new_stack(groups[begin + 2] or groups[begin + 3])
        if list_at >= 0:
            memo.keep_stack(memo.count + list_at, stack)
        return stack

    def _shape(self, pattern: DictPattern, groups: Groups) -> KeptShape | None:
        """Return what of a dict is kept; None where the numbers leap. It is looked up again by what keeps it, but for numbers."""
        puts = pattern.puts(groups)
        kept, list_at, texts = 0, -1, list[tuple[int, str]]()
        for group, put in zip(pattern.put_groups, puts, strict=True):
            if put:
                if put != MEMOIZE and memo_number(put) != self._memo.count + kept:
                    return None
                if group == pattern.list_put:
                    list_at = kept
                elif group in pattern.literals:
                    texts.append((kept, pattern.literals[group]))
                kept += 1
        shape = KeptShape(kept, list_at, tuple(texts))
        if not set(puts) - {MEMOIZE, _MISSING}:
            pattern.shapes[puts] = shape
        return shape

    def _keep(self, shape: KeptShape) -> None:
        memo = self._memo
        for at, text in shape.texts:
            memo.keep_text(memo.count + at, text)
        memo.count += shape.kept


class _Numbers(dict[bytes, int]):
    """The numbers that opcodes of integers stand for: an address comes again when it is freed."""

    def __missing__(self, token: bytes) -> int:
        if len(self) > _MOST_SEEN:
            self.clear()
        number = self[token] = _figure(token)
        return number


def _figure(token: bytes) -> int:
    """Return a number, 0 where the column is missing; raise OverflowError where none is as large."""
    number = whole_number(token) if token else 0
    if not 0 <= number < MOST:
        raise OverflowError
    return number
