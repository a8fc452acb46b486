"""What a program was doing at each position of a trace, and where its steps end.

torch names ranges by itself from 2.5 on: `Optimizer.step#AdamW.step`, `enumerate(DataLoader)#...`. Where a file has none, a step is
a round of the loop that the frames show: the outermost function that comes back to a line again and again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from oomdoctor.snapshots.recording import Action, Device, PythonFrame, Recording, Stack

OPTIMIZER_STEP, PROFILER_STEP = "Optimizer.step#", "ProfilerStep#"
_MODULE_CALLS = ("_call_impl", "_wrapped_call_impl")
"""What loops inside the call of a module goes over its layers (torch/nn/modules/module.py)."""
_OPTIMIZER_FILE = "torch/optim/"
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
    requests = [
        (at, stack)
        for at, (action, stack) in enumerate(zip(device.trace.actions, device.trace.stacks, strict=True))
        if action == Action.ALLOC
    ]
    outermost = {stack: tuple(reversed(stacks[stack].frames)) for stack in {stack for _, stack in requests} if stacks[stack].frames}
    requests = [(at, stack) for at, stack in requests if stack in outermost]
    for depth in range(max(map(len, outermost.values()), default=0)):
        level = _level(requests, outermost, depth)
        if level is None:
            return ()
        inside, lines = level
        visits = _visits(inside, lines)
        repeated = {line: begun for line, begun in visits.items() if len(begun) > _FEWEST_STEPS}
        if repeated:
            return tuple(repeated[_anchor(repeated, lines, outermost)][1:])
        busiest = Counter(lines[stack] for _, stack in inside).most_common(1)[0][0]
        requests = [(at, stack) for at, stack in inside if lines[stack] == busiest]
    return ()


def _level(
    requests: Sequence[tuple[int, int]], outermost: Mapping[int, tuple[PythonFrame, ...]], depth: int
) -> tuple[list[tuple[int, int]], dict[int, int]] | None:
    """Return the requests that come through one function at a depth, and the line of each stack there; None where most do not."""
    reaching = [(at, stack) for at, stack in requests if len(outermost[stack]) > depth]
    functions = Counter((outermost[stack][depth].file, outermost[stack][depth].function) for _, stack in reaching)
    if not functions:
        return None
    function, count = functions.most_common(1)[0]
    if count * 2 < len(requests) or function[1] in _MODULE_CALLS:
        return None
    lines = {
        stack: outermost[stack][depth].line
        for stack in {stack for _, stack in reaching}
        if (outermost[stack][depth].file, outermost[stack][depth].function) == function
    }
    return [(at, stack) for at, stack in reaching if stack in lines], lines


def _visits(requests: Sequence[tuple[int, int]], lines: Mapping[int, int]) -> dict[int, list[int]]:
    """Return the positions at which each line is reached from another one."""
    out: dict[int, list[int]] = {}
    last = None
    for at, stack in requests:
        line = lines[stack]
        if line != last:
            out.setdefault(line, []).append(at)
            last = line
    return out


def _anchor(repeated: Mapping[int, list[int]], lines: Mapping[int, int], outermost: Mapping[int, tuple[PythonFrame, ...]]) -> int:
    """Return the line that each round comes through once: the optimizer's, as batches may be gathered; else the first of the busiest."""
    steps = Counter(
        line for stack, line in lines.items() if line in repeated and any(_OPTIMIZER_FILE in frame.file for frame in outermost[stack])
    )
    if steps:
        return steps.most_common(1)[0][0]
    most = max(map(len, repeated.values()))
    return min(line for line, begun in repeated.items() if len(begun) * 2 > most)
