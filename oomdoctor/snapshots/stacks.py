"""The stacks of a recording, packed: a long trace has hundreds of thousands of them, made of a few thousand frames."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

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
    """Stacks by number; number 0 is the one that nobody recorded. Equal ones have one number.

    Each frame has a character, and a stack is the text of those of its frames, innermost first: as narrow as its characters allow,
    and searched as fast as texts are.
    """

    def __init__(self) -> None:
        self.frames = [PythonFrame("", 0, "")]
        """By the code of their characters; none has the first one."""
        self._characters: dict[PythonFrame, str] = {}
        self._texts: list[str] = []
        self._special: dict[int, tuple[bool, str | None]] = {}
        self._numbers: dict[object, int] = {}
        self._searches: dict[object, re.Pattern[str]] = {}
        self.add("")

    def frame(self, frame: PythonFrame) -> str:
        """Return the character of a frame; none for the frames that a recording has too many of to be one."""
        known = self._characters.get(frame)
        if known is None:
            known = self._characters[frame] = chr(len(self.frames)) if len(self.frames) <= sys.maxunicode else ""
            self.frames += [frame] if known else ()
        return known

    def add(self, frames: str, *, in_backward: bool = False, category: str | None = None) -> int:
        """Return the number of the stack of these frames, innermost first, by their characters."""
        key = (frames, in_backward, category) if in_backward or category is not None else frames
        number = self._numbers.setdefault(key, len(self._texts))
        if number == len(self._texts):
            self._texts.append(frames)
            if in_backward or category is not None:
                self._special[number] = (in_backward, category)
        return number

    def with_category(self, number: int, category: str | None) -> int:
        """Return the number of the same stack with what a profiler says that it holds."""
        return self.add(self._texts[number], in_backward=self.origin(number)[0], category=category)

    def from_outside(self, number: int, depth: int) -> PythonFrame | None:
        """Return the frame of a stack that has so many around it; None where it has fewer frames."""
        text = self._texts[number]
        return self.frames[ord(text[-1 - depth])] if depth < len(text) else None

    def innermost(self, number: int) -> PythonFrame | None:
        """Return the frame of a stack that asked; None where it has none."""
        text = self._texts[number]
        return self.frames[ord(text[0])] if text else None

    def first(self, number: int, accepted: Callable[[PythonFrame], object]) -> PythonFrame | None:
        """Return the innermost frame of a stack for which this is true; None where there is none.

        To be asked for when no more frames are added.
        """
        search = self._searches.get(accepted)
        if search is None:
            characters = "".join(chr(code) for code, frame in enumerate(self.frames) if code and accepted(frame))
            search = self._searches[accepted] = re.compile(f"[{re.escape(characters)}]" if characters else "(?!)")
        match = search.search(self._texts[number])
        return None if match is None else self.frames[ord(match[0])]

    def has_frames(self, number: int) -> bool:
        """Return whether a stack has frames."""
        return bool(self._texts[number])

    def origin(self, number: int) -> tuple[bool, str | None]:
        """Return whether autograd's thread made a stack, and its category."""
        return self._special.get(number, (False, None))

    def finish(self) -> None:
        """Add no more: what only that needs is given up."""
        self._numbers = {}

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, number: int) -> Stack: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Stack]: ...
    def __getitem__(self, number: int | slice) -> Stack | Sequence[Stack]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        frames = tuple(self.frames[ord(character)] for character in self._texts[number])
        return Stack(frames, *self.origin(number))
