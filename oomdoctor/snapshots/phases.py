"""What a program was doing at each position of a trace, and where its steps end.

torch names ranges by itself from 2.5 on: `Optimizer.step#AdamW.step`, `enumerate(DataLoader)#...`. Where a file has none, a step is
a round of the loop that the frames show: the outermost function that comes back to a line again and again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import compress, count
from typing import TypeVar

from msgspec import Struct

from oomdoctor.snapshots.recording import Action, Device, Recording
from oomdoctor.snapshots.stacks import Stacks

OPTIMIZER_STEP, PROFILER_STEP = "Optimizer.step#", "ProfilerStep#"
_MODULE_CALLS = ("_call_impl", "_wrapped_call_impl")
"""What loops inside the call of a module goes over its layers (torch/nn/modules/module.py)."""
_OPTIMIZER_FILE = "torch/optim/"
_FEWEST_STEPS = 4
"""Fewer rounds are no loop."""
OPTIMIZER, LOADING_DATA = "optimizer step", "loading data"
_NAMED = ((OPTIMIZER_STEP, OPTIMIZER), ("Optimizer.zero_grad#", "zero_grad"), ("enumerate(DataLoader)#", LOADING_DATA))

_Key = TypeVar("_Key", bound=Hashable)


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


def _rounds(stacks: Stacks, device: Device) -> tuple[int, ...]:
    """Return the positions at which the outermost loop begins again."""
    trace, allocs = device.trace, device.trace.where(Action.ALLOC)
    requests = array("L", compress(range(len(trace)), allocs))
    times: Mapping[int, int] = {
        stack: times for stack, times in Counter(compress(trace.stacks, allocs)).items() if stacks.has_frames(stack)
    }
    for depth in count():
        lines = _level(times, stacks, depth)
        if lines is None:
            break
        requests = array("L", compress(requests, map(lines.__contains__, map(trace.stacks.__getitem__, requests))))
        visits = _visits(requests, trace.stacks, lines)
        repeated = {line: begun for line, begun in visits.items() if len(begun) > _FEWEST_STEPS}
        if repeated:
            return tuple(repeated[_anchor(repeated, lines, stacks)][1:])
        busiest = _most((line, times[stack]) for stack, line in lines.items())[0]
        times = {stack: times[stack] for stack, line in lines.items() if line == busiest}
    return ()


def _level(times: Mapping[int, int], stacks: Stacks, depth: int) -> dict[int, int] | None:
    """Return the line of each stack that comes through the busiest function at a depth; None where most requests do not.

    `times` is how many requests have each stack.
    """
    frames = {stack: frame for stack in times if (frame := stacks.from_outside(stack, depth)) is not None}
    if not frames:
        return None
    function, calls = _most(((frame.file, frame.function), times[stack]) for stack, frame in frames.items())
    if calls * 2 < sum(times.values()) or function[1] in _MODULE_CALLS:
        return None
    return {stack: frame.line for stack, frame in frames.items() if (frame.file, frame.function) == function}


def _most(counted: Iterable[tuple[_Key, int]]) -> tuple[_Key, int]:
    """Return what is counted most, all its counts together."""
    sums: Counter[_Key] = Counter()
    for key, times in counted:
        sums[key] += times
    return sums.most_common(1)[0]


def _visits(requests: Sequence[int], stack_at: Sequence[int], lines: Mapping[int, int]) -> dict[int, list[int]]:
    """Return the positions at which each line is reached from another one."""
    out: dict[int, list[int]] = {}
    last = None
    for at in requests:
        line = lines[stack_at[at]]
        if line != last:
            out.setdefault(line, []).append(at)
            last = line
    return out


def _anchor(repeated: Mapping[int, list[int]], lines: Mapping[int, int], stacks: Stacks) -> int:
    """Return the line that each round comes through once: the optimizer's, as batches may be gathered; else the first of the busiest."""
    steps = Counter(
        line for stack, line in lines.items() if line in repeated and any(_OPTIMIZER_FILE in frame.file for frame in stacks[stack].frames)
    )
    if steps:
        return steps.most_common(1)[0][0]
    most = max(map(len, repeated.values()))
    return min(line for line, begun in repeated.items() if len(begun) * 2 > most)
