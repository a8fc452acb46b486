"""What a program was doing at each position of a trace, and where its steps end.

torch names ranges by itself from 2.5 on: `Optimizer.step#AdamW.step`, `enumerate(DataLoader)#...`. Where a file has none, a step is
a round of the loop that the frames show: the outermost function whose line changes, from a lower line to a higher one and back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from oomdoctor.snapshots.recording import Action, Device, PythonFrame, Recording, Stack

OPTIMIZER_STEP, PROFILER_STEP = "Optimizer.step#", "ProfilerStep#"
_FEWEST_STEPS = 4
"""Fewer rounds are no loop."""
OPTIMIZER, LOADING_DATA = "optimizer step", "loading data"
_NAMED = ((OPTIMIZER_STEP, OPTIMIZER), ("Optimizer.zero_grad#", "zero_grad"), ("enumerate(DataLoader)#", LOADING_DATA))


class StepEnds(Struct, frozen=True):
    """The positions right behind each step, and how they are known."""

    ends: tuple[int, ...]
    source: str
    """`annotations`, `loop` or `none`."""


def steps(recording: Recording, device: Device) -> StepEnds:
    """Return where the steps of a device's trace end."""
    times = device.trace.times
    here = [annotation for annotation in recording.annotations if annotation.device == device.index and not annotation.is_start]
    for range_ in (PROFILER_STEP, OPTIMIZER_STEP):
        ended = sorted(annotation.time for annotation in here if annotation.name.startswith(range_))
        if ended and times and times[0]:
            return StepEnds(tuple(sorted({bisect_right(times, time) for time in ended})), "annotations")
    ends = _rounds(recording.stacks, device)
    return StepEnds(ends, "loop") if len(ends) >= _FEWEST_STEPS else StepEnds((), "none")


def named_phases(recording: Recording, device: Device) -> list[tuple[int, int, str]]:
    """Return the ranges of positions that have a name: first, behind the last, name."""
    out, opened = [], {}
    times = device.trace.times
    for annotation in sorted(recording.annotations, key=lambda annotation: annotation.time):
        phase = next((phase for begin, phase in _NAMED if annotation.name.startswith(begin)), None)
        if phase is None or annotation.device != device.index or not times or not times[0]:
            continue
        if annotation.is_start:
            opened[annotation.name] = annotation.time
        elif annotation.name in opened:
            out.append((bisect_left(times, opened.pop(annotation.name)), bisect_right(times, annotation.time), phase))
    return out


def _rounds(stacks: Sequence[Stack], device: Device) -> tuple[int, ...]:
    """Return the positions at which the outermost loop begins again."""
    used = Counter(stack for action, stack in zip(device.trace.actions, device.trace.stacks, strict=True) if action == Action.ALLOC)
    outermost = {stack: tuple(reversed(stacks[stack].frames)) for stack in used if stacks[stack].frames}
    level = _loop(outermost, used)
    if level is None:
        return ()
    depth, function, often = level
    lines = {
        stack: frames[depth].line
        for stack, frames in outermost.items()
        if len(frames) > depth and (frames[depth].file, frames[depth].function) == function and frames[depth].line in often
    }
    return tuple(_returns(device.trace.actions, device.trace.stacks, lines))


def _loop(outermost: dict[int, tuple[PythonFrame, ...]], used: Counter[int]) -> tuple[int, tuple[str, str], list[int]] | None:
    """Return the depth and function of the outermost frame that most requests come through on more than one line, and the lines."""
    total = sum(used[stack] for stack in outermost)
    stacks = list(outermost)
    for depth in range(max(map(len, outermost.values()), default=0)):
        functions: Counter[tuple[str, str]] = Counter()
        for stack in stacks:
            if len(outermost[stack]) > depth:
                functions[outermost[stack][depth].file, outermost[stack][depth].function] += used[stack]
        if not functions:
            return None
        function, count = functions.most_common(1)[0]
        if count * 2 < total:
            return None
        stacks = [
            stack
            for stack in stacks
            if len(outermost[stack]) > depth and (outermost[stack][depth].file, outermost[stack][depth].function) == function
        ]
        by_line: Counter[int] = Counter()
        for stack in stacks:
            by_line[outermost[stack][depth].line] += used[stack]
        often = [line for line, times in by_line.items() if times >= _FEWEST_STEPS]
        if len(often) > 1:
            return depth, function, often
        stacks = [stack for stack in stacks if outermost[stack][depth].line in often]
    return None


def _returns(actions: Sequence[int], stacks: Sequence[int], lines: dict[int, int]) -> list[int]:
    """Return where the round's first line is reached again, from another one."""
    first, out, last = min(lines.values()), list[int](), None
    for position, (action, stack) in enumerate(zip(actions, stacks, strict=True)):
        line = lines.get(stack) if action == Action.ALLOC else None
        if line is not None:
            if line == first and last not in (None, first):
                out.append(position)
            last = line
    return out
