"""What a recording tells of each device: its end, its peak, each failed request, who held the memory and what grew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.snapshots.address_space import ranges_at, saved_free_pieces
from oomdoctor.snapshots.growth import Growth, freed_in_a_step, growth
from oomdoctor.snapshots.kept import Kept, kept
from oomdoctor.snapshots.phases import StepEnds, named_phases, steps
from oomdoctor.snapshots.picture.course import Course, Owner, Owners, course
from oomdoctor.snapshots.picture.memory_map import MemoryMap, memory_map
from oomdoctor.snapshots.recording import Action, Device, Recording
from oomdoctor.snapshots.refusal import Refusal, refusals
from oomdoctor.snapshots.replay import LiveBlock, Peak, live_at, live_at_end, peak, running_totals
from oomdoctor.snapshots.sites import Categories, Holder, Holdings, holders
from oomdoctor.snapshots.stacks import NO_STACK

AT_OOM, AT_PEAK, AT_END = "oom", "peak", "end"


class SavedState(Struct, frozen=True):
    """The state when the snapshot was taken, in bytes."""

    reserved: int
    requested: int
    """What the program asked for of the blocks that live, as the peak counts it."""
    allocated: int
    """What `torch.cuda.memory_allocated()` gives: blocks in use, as long as they are."""
    waiting: int
    """Blocks that the program freed and another stream still uses."""
    largest_free_block: int | None
    """None where the file does not tell where blocks lay."""
    in_other_pools: int
    """Free bytes in private pools: CUDA graphs and MemPools."""


class DeviceExplanation(Struct, frozen=True):
    """What a recording tells of one device."""

    index: int
    entries: int
    has_history: bool
    """Whether allocations were recorded; else only the saved state is known."""
    has_frames: bool
    end: SavedState
    peak: Peak
    ooms: tuple[Refusal, ...]
    holders_at: str
    """At which moment the holders are counted: `oom`, `peak` or `end`."""
    holders: tuple[Holder, ...]
    kept: Kept | None
    """What forward passes left, at the same moment."""
    steps: StepEnds
    growth: tuple[Growth, ...]
    freed_in_a_step: int
    """The fewest bytes that a step allocated and freed again."""
    ends_giving_back: bool
    """Whether the trace ends, full of live blocks and without a failed request, in segments that go back to the driver: the last thing
    that the allocator does before it fails. Torch 2.1 to 2.13 record no failure where NVML fails in the message about it
    (c10/cuda/CUDACachingAllocator.cpp, `malloc`: reportProcessMemoryInfo comes before record_trace)."""
    given_back: int
    """The bytes of these segments."""
    disagrees: bool
    """Whether the trace and the saved state cannot both be whole: more lives than is reserved, or more is freed than there was."""
    course: Course
    map: MemoryMap
    """The segments at the moment at which holders are counted, coloured by the holders of the course, else by the largest."""
    map_owners: tuple[tuple[str | None, str], ...]


def explain(recording: Recording, holdings: Holdings, totals: Mapping[int, int]) -> tuple[DeviceExplanation, ...]:
    """Return what a recording tells of each device. `totals` are the bytes of cards, by index, as far as they are known."""
    return tuple(_device(recording, device, holdings, totals.get(device.index)) for device in recording.devices)


def _device(recording: Recording, device: Device, holdings: Holdings, total: int | None) -> DeviceExplanation:
    categories = Categories(recording.stacks, holdings, named_phases(recording, device))
    sums = running_totals(device)
    ooms = refusals(device, sums, total, recording.stacks, categories)
    highest, ends = peak(sums), steps(recording, device)
    moment, position = _moment(device, ooms, highest)
    live = live_at_end(device) if moment == AT_END else live_at(device, position)
    owners = Owners(recording.stacks, categories)
    over_time = course(device, sums, owners)
    told = tuple((owner.site, owner.category) for owner in over_time.owners) or _largest(live, owners)
    grown = growth(device, recording.stacks, ends, position if moment == AT_OOM else len(device.trace), categories)
    return DeviceExplanation(
        index=device.index,
        entries=len(device.trace),
        has_history=Action.ALLOC in device.trace.actions,
        has_frames=_has_frames(device, recording),
        end=_saved(device),
        peak=_in_file(highest, device),
        ooms=tuple(_in_file(oom, device) for oom in ooms),
        holders_at=moment,
        holders=holders(live, recording.stacks, categories),
        kept=kept(live, recording.stacks, categories),
        steps=ends,
        growth=grown,
        freed_in_a_step=freed_in_a_step(device, ends) if grown else 0,
        ends_giving_back=_ends_giving_back(device, ooms, highest),
        given_back=_given_back(device),
        disagrees=sums.start.missing > 0 or highest.requested > highest.reserved,
        course=over_time,
        map=memory_map(
            ranges_at(device, len(device.trace) if moment == AT_END else position),
            live,
            {address: owners.of(block.stack, block.born) for address, block in live.items()},
            told,
        ),
        map_owners=told,
    )


_Placed = TypeVar("_Placed", Peak, Refusal)


def _in_file(placed: _Placed, device: Device) -> _Placed:
    """Return it with the position that its entry has in the file."""
    rows = device.rows
    return placed if not rows or placed.position >= len(rows) else replace(placed, position=rows[placed.position])


def _largest(live: Mapping[int, LiveBlock], owners: Owners) -> tuple[Owner, ...]:
    """Return the owners that hold most, where there is no course that tells."""
    sums: Counter[Owner] = Counter()
    for block in live.values():
        sums[owners.of(block.stack, block.born)] += block.requested
    return tuple(owner for owner, _ in sums.most_common(_TOLD))


_TOLD = 10
_STILL_LIVE = 0.9
"""Of the peak, what lives where a request fails."""


def _ends_giving_back(device: Device, ooms: Sequence[Refusal], highest: Peak) -> bool:
    live = sum(block.requested for block in live_at_end(device).values())
    return not ooms and _given_back(device) > 0 and live > _STILL_LIVE * highest.requested


def _given_back(device: Device) -> int:
    """Return the bytes of the segments that the trace's last entries give back."""
    trace, out = device.trace, 0
    for action, size in zip(reversed(trace.actions), reversed(trace.sizes), strict=True):
        if action in (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP):
            out += size
        elif action != Action.SNAPSHOT:
            break
    return out


def _moment(device: Device, ooms: Sequence[Refusal], highest: Peak) -> tuple[str, int]:
    """Return the moment that matters: the failure that ended the run, else the peak, else the state that was saved."""
    last = next((oom for oom in reversed(ooms) if not oom.survived), None)
    if last is not None:
        return AT_OOM, last.position
    if Action.ALLOC not in device.trace.actions:
        return AT_END, 0
    return AT_PEAK, highest.position + 1


def _has_frames(device: Device, recording: Recording) -> bool:
    blocks = (block.stack for segment in device.segments for block in segment.blocks)
    return any(recording.stacks.has_frames(stack) for stack in {*device.trace.stacks, *blocks} if stack != NO_STACK)


def _saved(device: Device) -> SavedState:
    blocks = [(segment, block) for segment in device.segments for block in segment.blocks]
    return SavedState(
        reserved=sum(segment.size for segment in device.segments),
        requested=sum(block.requested for _, block in blocks if block.is_live),
        allocated=sum(block.size for _, block in blocks if block.is_live and not block.is_waiting),
        waiting=sum(block.size for _, block in blocks if block.is_waiting),
        largest_free_block=max(saved_free_pieces(device), default=0) if device.is_mapped else None,
        in_other_pools=sum(block.size for segment, block in blocks if segment.pool != (0, 0) and not block.is_live),
    )
