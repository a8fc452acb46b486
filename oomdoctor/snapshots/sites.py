"""Whose line a request came from, and what it holds there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter

from msgspec import Struct

from oomdoctor.knowledge.records.evidence import ComputationCore, HoldingRecord
from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.snapshots.phases import LOADING_DATA, OPTIMIZER
from oomdoctor.snapshots.recording import NO_STACK, PythonFrame, Stack
from oomdoctor.snapshots.replay import LiveBlock

_LIBRARY = re.compile(r"[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python\d|[\\/]torchinductor_|^<frozen |[\\/](?:runpy|threading)\.py$")
"""Files that whoever runs the program did not write."""
_FUNCTION = attrgetter("function")
BEFORE, BACKWARD, UNKNOWN = "there-before-the-recording", "gradients-and-backward", "unknown"
DATA, OPTIMIZER_STATES = "data", "optimizer-states"
"""Entries of rules/holdings.yaml that the moment tells, or that nothing does."""


class Holder(Struct, frozen=True):
    """What one line of a program holds at a moment."""

    site: str | None
    """The innermost frame of the user as file:line:function; None where no frame of Python was recorded."""
    frame: str | None
    """The innermost frame of all."""
    category: str
    """An entry of rules/holdings.yaml."""
    size: int
    """Asked bytes."""
    blocks: int


def own_frame(stack: Stack) -> PythonFrame | None:
    """Return the innermost frame that is not of a library, else the innermost."""
    for frame in stack.frames:
        if not is_of_library(frame.file):
            return frame
    return stack.frames[0] if stack.frames else None


@lru_cache(maxsize=4096)
def is_of_library(file: str) -> bool:
    """Return whether a file is not of those who run the program."""
    return _LIBRARY.search(file) is not None


class Holdings:
    """What frames show memory to be held for (rules/holdings.yaml)."""

    def __init__(self, holdings: Sequence[HoldingRecord], computations: Sequence[ComputationCore]) -> None:
        self._finder = ComputationFinder(computations)
        self._frames: dict[PythonFrame, str | None] = {}
        self._computed = {computed: holding.id for holding in holdings for computed in holding.computations}
        self._called = [(holding.id, frozenset(holding.functions)) for holding in holdings if holding.functions]

    def of(self, frames: Sequence[PythonFrame]) -> str | None:
        """Return what memory is held for that these frames ask for; None where they do not tell."""
        computed = self._innermost(frames)
        if computed in self._computed:
            return self._computed[computed]
        functions = set(map(_FUNCTION, frames))
        return next((name for name, called in self._called if not called.isdisjoint(functions)), None)

    def _innermost(self, frames: Sequence[PythonFrame]) -> str | None:
        """Return what the innermost frame computes that names something known. Few frames make up all stacks: each is looked at once."""
        try:
            return next(filter(None, map(self._frames.__getitem__, frames)), None)
        except KeyError:
            for frame in frames:
                if frame not in self._frames:
                    self._frames[frame] = self._named(frame)
            return self._innermost(frames)

    def _named(self, frame: PythonFrame) -> str | None:
        """Return what a frame computes."""
        line = f'  File "{frame.file}", line {frame.line}, in {frame.function}'
        return self._finder.find(line.encode("utf-8", "replace"), b"")


class Categories:
    """What blocks hold, told by their frames and the moment of their birth."""

    def __init__(self, stacks: Sequence[Stack], holdings: Holdings, phases: Sequence[tuple[int, int, str]]) -> None:
        self._stacks, self._holdings, self._ranges = stacks, holdings, _ranges(phases)
        self._known: list[tuple[str | None, str | None] | None] = [None] * len(stacks)
        self._same: dict[tuple[str | None, str | None], tuple[str | None, str | None]] = {}
        self._has_frames = any(stack.frames for stack in stacks)

    def of(self, stack: int, born: int | None) -> str:
        """Return what a block holds that was asked for with a stack at a position; None: before the recording."""
        told = self._known[stack]
        if told is None:
            told = self._known[stack] = self._told(self._stacks[stack])
        profiled, known = told
        if profiled is not None:
            return profiled
        phase = None if born is None else self._phase(born)
        if phase == OPTIMIZER:
            return OPTIMIZER_STATES
        if known is not None:
            return known
        if born is None and stack == NO_STACK:
            return BEFORE
        if phase == LOADING_DATA:
            return DATA
        return BACKWARD if stack == NO_STACK and self._has_frames else UNKNOWN

    def _told(self, stack: Stack) -> tuple[str | None, str | None]:
        """Return what a profiler says that a stack holds, and what its frames tell."""
        told = stack.category, BACKWARD if stack.in_backward else self._holdings.of(stack.frames)
        return self._same.setdefault(told, told)

    def _phase(self, position: int) -> str | None:
        return next((phase for phase, ranges in self._ranges.items() if _is_within(position, *ranges)), None)


def _is_within(position: int, firsts: Sequence[int], behind: Sequence[int]) -> bool:
    """Return whether a position lies in one of the ranges; `behind` are the ends of all ranges up to each."""
    at = bisect_right(firsts, position) - 1
    return at >= 0 and position < behind[at]


def _ranges(phases: Sequence[tuple[int, int, str]]) -> dict[str, tuple[list[int], list[int]]]:
    """Return the ranges of each phase as they are searched: firsts in order, and how far all up to each reach; the optimizer's first."""
    out: dict[str, tuple[list[int], list[int]]] = {OPTIMIZER: ([], [])}
    for first, behind, phase in sorted(phases):
        firsts, reach = out.setdefault(phase, ([], []))
        firsts.append(first)
        reach.append(max(behind, reach[-1]) if reach else behind)
    return out


def holders(live: Mapping[int, LiveBlock], stacks: Sequence[Stack], categories: Categories) -> tuple[Holder, ...]:
    """Return who holds what, the largest first; one line for each site, frame and category."""
    sums: dict[tuple[str | None, str | None, str], list[int]] = {}
    for block in live.values():
        stack = stacks[block.stack]
        own, inner = own_frame(stack), stack.frames[0] if stack.frames else None
        key = (None if own is None else str(own), None if inner is None else str(inner), categories.of(block.stack, block.born))
        total = sums.setdefault(key, [0, 0])
        total[0] += block.requested
        total[1] += 1
    out = (Holder(*key, size, blocks) for key, (size, blocks) in sums.items())
    return tuple(sorted(out, key=lambda holder: (-holder.size, holder.site or "")))
