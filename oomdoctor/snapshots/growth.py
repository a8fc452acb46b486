"""What grows from step to step: sites whose blocks of each step stay."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from oomdoctor.snapshots.phases import StepEnds
from oomdoctor.snapshots.recording import Action, Device
from oomdoctor.snapshots.replay import frees_by, live_at
from oomdoctor.snapshots.sites import Categories, own_frame
from oomdoctor.snapshots.stacks import Stacks

_FEWEST_STEPS = 4
"""StepEnds in a row in which a site must add: states that appear at the first step are not growth."""
_SHARE = 0.75
"""How many of the steps that add must lie as far apart as is usual for the site: each, or each second, as it logs."""
_FREED_LATER = 0.25
"""Of the blocks that a site holds, as many may have been freed after steps; where it is more, it keeps what is recent."""
_GROW_BY_DESIGN = frozenset(("weights", "optimizer-states", "kv-cache", "cuda-graphs"))
"""Held for what fills up part by part, also in a loop, and is no leak (rules/holdings.yaml)."""


class Growth(Struct, frozen=True):
    """What a site adds in each step and nobody frees."""

    site: str
    bytes_per_step: int
    steps: int
    """The number of steps that added."""
    held: int
    """The bytes that it holds of these steps at the end."""
    blocks: int


def growth(device: Device, stacks: Stacks, steps: StepEnds, until: int, categories: Categories) -> tuple[Growth, ...]:
    """Return the sites that hold blocks of most steps before a position, those that add most first."""
    ends = [end for end in steps.ends if end < until]
    if len(ends) < _FEWEST_STEPS:
        return ()
    by_site: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for block in live_at(device, until).values():
        own = None if block.born is None else own_frame(stacks, block.stack)
        if block.born is not None and own is not None and categories.of(block.stack, block.born) not in _GROW_BY_DESIGN:
            by_site[str(own)][bisect_right(ends, block.born)].append(block.requested)
    growing = [grows for site, added in by_site.items() if (grows := _growth(site, added, len(ends))) is not None]
    handed_on = _freed_later(device, stacks, ends, until) if growing else {}
    staying = (grows for grows in growing if handed_on.get(grows.site, 0) <= _FREED_LATER * grows.blocks)
    return tuple(sorted(staying, key=lambda grows: -grows.held))


def _growth(site: str, added: dict[int, list[int]], steps: int) -> Growth | None:
    """Return what a site adds, where it is much the same at even distances up to the last whole step."""
    whole = sorted(step for step in added if step < steps)
    if len(whole) < _FEWEST_STEPS:
        return None
    distances = sorted(later - step for step, later in pairwise(whole))
    usual = distances[len(distances) // 2]
    even = sum(distance <= usual + 1 for distance in distances) >= _SHARE * len(distances)
    if not even or usual * len(distances) < _SHARE * (whole[-1] - whole[0]) or whole[-1] < steps - 1 - usual:
        return None
    sizes = [sum(added[step]) for step in whole]
    middle = sorted(sizes)[len(sizes) // 2]
    if sum(size <= 2 * middle for size in sizes) < _SHARE * len(sizes):
        return None
    held = sum(map(sum, added.values()))
    return Growth(site, middle, len(whole), held, sum(map(len, added.values())))


def _freed_later(device: Device, stacks: Stacks, ends: Sequence[int], until: int) -> Counter[str]:
    """Return how many blocks of each site were freed in a later step than the one that made them: what is kept for a while."""
    trace, free = device.trace, frees_by(device.trace)
    born: dict[int, int] = {}
    out: Counter[str] = Counter()
    for at in range(min(until, len(trace))):
        if trace.actions[at] == Action.ALLOC:
            born[trace.addresses[at]] = at
        elif trace.actions[at] == free:
            begun = born.pop(trace.addresses[at], None)
            if begun is not None and bisect_right(ends, begun) < bisect_right(ends, at) - 1:
                own = own_frame(stacks, trace.stacks[begun])
                out[str(own)] += own is not None
    return out


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
