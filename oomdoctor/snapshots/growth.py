"""What grows from step to step: sites whose blocks of each step stay."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from oomdoctor.snapshots.phases import StepEnds
from oomdoctor.snapshots.recording import Action, Device, Stack
from oomdoctor.snapshots.replay import frees_by, live_at
from oomdoctor.snapshots.sites import own_frame

_FEWEST_STEPS = 4
"""StepEnds in a row in which a site must add: states that appear at the first step are not growth."""
_SHARE = 0.75
"""How many of the steps since the first must have added."""


class Growth(Struct, frozen=True):
    """What a site adds in each step and nobody frees."""

    site: str
    bytes_per_step: int
    steps: int
    """The number of steps that added."""
    held: int
    """The bytes that it holds of these steps at the end."""
    blocks: int


def growth(device: Device, stacks: Sequence[Stack], steps: StepEnds, until: int) -> tuple[Growth, ...]:
    """Return the sites that hold blocks of most steps before a position, those that add most first."""
    ends = [end for end in steps.ends if end < until]
    if len(ends) < _FEWEST_STEPS:
        return ()
    by_site: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for block in live_at(device, until).values():
        own = None if block.born is None else own_frame(stacks[block.stack])
        if block.born is not None and own is not None:
            by_site[str(own)][bisect_right(ends, block.born)].append(block.requested)
    growing = (_growth(site, added, len(ends)) for site, added in by_site.items())
    return tuple(sorted((grows for grows in growing if grows is not None), key=lambda grows: -grows.held))


def _growth(site: str, added: dict[int, list[int]], steps: int) -> Growth | None:
    """Return what a site adds, where it is much the same in most steps up to the last whole one."""
    whole = sorted(step for step in added if step < steps)
    if len(whole) < _FEWEST_STEPS or len(whole) < _SHARE * (steps - whole[0]) or whole[-1] < steps - 2:
        return None
    sizes = [sum(added[step]) for step in whole]
    middle = sorted(sizes)[len(sizes) // 2]
    if sum(size <= 2 * middle for size in sizes) < _SHARE * len(sizes):
        return None
    held = sum(map(sum, added.values()))
    return Growth(site, middle, len(whole), held, sum(map(len, added.values())))


def freed_in_a_step(device: Device, steps: StepEnds) -> int:
    """Return the fewest bytes that were allocated and freed again between two ends: what only fills up has no steps of a run."""
    trace, free = device.trace, frees_by(device.trace)
    fewest: int | None = None
    for begin, end in pairwise(steps.ends):
        born: dict[int, int] = {}
        freed = 0
        for at in range(begin, min(end, len(trace))):
            if trace.actions[at] == Action.ALLOC:
                born[trace.addresses[at]] = trace.sizes[at]
            elif trace.actions[at] == free:
                freed += born.pop(trace.addresses[at], 0)
        fewest = freed if fewest is None else min(fewest, freed)
    return fewest or 0
