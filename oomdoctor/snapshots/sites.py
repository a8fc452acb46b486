"""Whose line a request came from, and what it holds there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from oomdoctor.knowledge.records.evidence import ComputationCore, HoldingRecord
from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.snapshots.phases import LOADING_DATA, OPTIMIZER
from oomdoctor.snapshots.replay import LiveBlock
from oomdoctor.snapshots.stacks import NO_STACK, PythonFrame, Stacks

_LIBRARY = re.compile(r"[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python\d|[\\/]torchinductor_|^<frozen |[\\/](?:runpy|threading)\.py$")
"""Files that whoever runs the program did not write."""
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


def own_frame(stacks: Stacks, number: int) -> PythonFrame | None:
    """Return the innermost frame of a stack that is not of a library, else the innermost."""
    return stacks.first(number, _is_own) or stacks.innermost(number)


def _is_own(frame: PythonFrame) -> bool:
    return not is_of_library(frame.file)


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
        self._called = [holding.id for holding in holdings if holding.functions]
        listed = [holding.functions for holding in holdings if holding.functions]
        self._ranks = {function: rank for rank, functions in reversed(list(enumerate(listed))) for function in functions}

    def of(self, stacks: Stacks, number: int) -> str | None:
        """Return what memory is held for that the frames of a stack ask for; None where they do not tell."""
        if stacks.first(number, self._tells) is None:
            return None
        innermost = stacks.first(number, self.computes)
        computed = None if innermost is None else self.computes(innermost)
        if computed in self._computed:
            return self._computed[computed]
        rank = min(map(self._rank, stacks[number].frames))
        return self._called[rank] if rank < len(self._called) else None

    def computes(self, frame: PythonFrame) -> str | None:
        """Return what a frame computes that names something known."""
        if frame not in self._frames:
            line = f'  File "{frame.file}", line {frame.line}, in {frame.function}'
            self._frames[frame] = self._finder.find(line.encode("utf-8", "replace"), b"")
        return self._frames[frame]

    def _tells(self, frame: PythonFrame) -> bool:
        """Return whether a frame may tell anything: most stacks have none that does."""
        return self.computes(frame) is not None or frame.function in self._ranks

    def _rank(self, frame: PythonFrame) -> int:
        """Return which holding the function of a frame is listed with first; their number where it is with none."""
        return self._ranks.get(frame.function, len(self._called))


class Categories:
    """What blocks hold, told by their frames and the moment of their birth."""

    def __init__(self, stacks: Stacks, holdings: Holdings, phases: Sequence[tuple[int, int, str]]) -> None:
        self._stacks, self._holdings, self._ranges = stacks, holdings, _ranges(phases)
        self._known: list[tuple[str | None, str | None] | None] = [None] * len(stacks)
        self._same: dict[tuple[str | None, str | None], tuple[str | None, str | None]] = {}
        self._has_frames = any(map(stacks.has_frames, range(len(stacks))))

    def of(self, stack: int, born: int | None) -> str:
        """Return what a block holds that was asked for with a stack at a position; None: before the recording."""
        told = self._known[stack]
        if told is None:
            told = self._known[stack] = self._told(stack)
        profiled, known = told
        if profiled is not None:
            return profiled
        phase = self._phase(born) if born is not None and self._ranges else None
        if phase == OPTIMIZER:
            return OPTIMIZER_STATES
        if known is not None:
            return known
        if born is None and stack == NO_STACK:
            return BEFORE
        if phase == LOADING_DATA:
            return DATA
        return BACKWARD if stack == NO_STACK and self._has_frames else UNKNOWN

    def _told(self, stack: int) -> tuple[str | None, str | None]:
        """Return what a profiler says that a stack holds, and what its frames tell."""
        in_backward, category = self._stacks.origin(stack)
        told = category, BACKWARD if in_backward else self._holdings.of(self._stacks, stack)
        return self._same.setdefault(told, told)

    def _phase(self, position: int) -> str | None:
        return next((phase for phase, ranges in self._ranges.items() if _is_within(position, *ranges)), None)


def _is_within(position: int, firsts: Sequence[int], behind: Sequence[int]) -> bool:
    """Return whether a position lies in one of the ranges; `behind` are the ends of all ranges up to each."""
    at = bisect_right(firsts, position) - 1
    return at >= 0 and position < behind[at]


def _ranges(phases: Sequence[tuple[int, int, str]]) -> dict[str, tuple[list[int], list[int]]]:
    """Return the ranges of each phase as they are searched: firsts in order, and how far all up to each reach; the optimizer's first."""
    out: dict[str, tuple[list[int], list[int]]] = {}
    for first, behind, phase in sorted(phases, key=lambda named: (named[2] != OPTIMIZER, named)):
        firsts, reach = out.setdefault(phase, ([], []))
        firsts.append(first)
        reach.append(max(behind, reach[-1]) if reach else behind)
    return out


def holders(live: Mapping[int, LiveBlock], stacks: Stacks, categories: Categories) -> tuple[Holder, ...]:
    """Return who holds what, the largest first; one line for each site, frame and category."""
    sums: dict[tuple[str | None, str | None, str], list[int]] = {}
    for block in live.values():
        own, inner = own_frame(stacks, block.stack), stacks.innermost(block.stack)
        key = (None if own is None else str(own), None if inner is None else str(inner), categories.of(block.stack, block.born))
        total = sums.setdefault(key, [0, 0])
        total[0] += block.requested
        total[1] += 1
    out = (Holder(*key, size, blocks) for key, (size, blocks) in sums.items())
    return tuple(sorted(out, key=lambda holder: (-holder.size, holder.site or "")))
