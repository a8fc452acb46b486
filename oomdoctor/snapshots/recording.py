"""A memory snapshot as it is worked with: segments and blocks as they were saved, and the trace of each device in columns.

Sizes are in bytes. The keys of the file, and since when torch writes them: torch/csrc/cuda/memory_snapshot.cpp and the docstring of
`torch.cuda.memory._snapshot`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from oomdoctor.case.gap import Gap
from oomdoctor.snapshots.stacks import Stacks


class Action(IntEnum):
    """What an entry of a trace says."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    SNAPSHOT = 7
    OOM = 8
    OTHER = 9


ACTIONS = {action.name.lower(): action for action in Action if action is not Action.OTHER}


_PROFILED = {
    "parameter": "weights",
    "optimizer_state": "optimizer-states",
    "input": "data",
    "activation": "activations",
    "gradient": "gradients-and-backward",
    "autograd_detail": "gradients-and-backward",
}
"""The categories of torch/profiler/_memory_profiler.py."""


def profiled(category: object) -> str | None:
    """Return what memory of a category of torch's profiler is held for."""
    return _PROFILED.get(category) if isinstance(category, str) else None


Row = tuple[int, int, int, int, int, int]
"""An entry of a trace: action, address, size, stream, time and stack."""
MOST = 1 << 62
"""No size, no address and no time is as large."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What a device's allocator did, oldest first, as columns of one length. Position p of a trace is row p of each."""

    actions: array[int] = field(default_factory=lambda: array("B"))
    addresses: array[int] = field(default_factory=lambda: array("Q"))
    """For an OOM: the bytes that the driver had free."""
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    """Asked bytes; of an OOM the request rounded up to 512 bytes, of segments what was asked of the driver."""
    streams: array[int] = field(default_factory=lambda: array("Q"))
    stacks: array[int] = field(default_factory=lambda: array("I"))
    times: array[int] = field(default_factory=lambda: array("Q"))
    """Microseconds since 1970; 0 where none was written (before torch 2.2)."""

    def __len__(self) -> int:
        return len(self.actions)

    def where(self, *actions: Action) -> bytes:
        """Return 1 for each entry that is one of some actions, 0 for the others: what `compress` takes its choice from."""
        return self.actions.tobytes().translate(bytes(code in actions for code in range(256)))

    def append(self, action: int, address: int, size: int, stream: int, time: int, stack: int) -> None:
        """Add an entry. Each number must be one of its column."""
        self.actions.append(action)
        self.addresses.append(address)
        self.sizes.append(size)
        self.streams.append(stream)
        self.times.append(time)
        self.stacks.append(stack)


@dataclass(frozen=True, slots=True)
class SavedBlock:
    """A piece of a segment that somebody uses, or nobody."""

    address: int
    size: int
    requested: int
    """What its owner asked for; of a free block 0, as the file keeps the last owner's there."""
    is_live: bool
    is_waiting: bool
    """Freed by the program, and still used by another stream."""
    stack: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Memory that the driver gave in one piece; of an expandable one a stretch that is mapped."""

    address: int
    size: int
    stream: int
    pool: tuple[int, int]
    """(0, 0) is the shared pool; others belong to CUDA graphs and MemPools."""
    is_small: bool
    is_expandable: bool
    blocks: tuple[SavedBlock, ...]


@dataclass(frozen=True, slots=True)
class Device:
    """What the file holds of one card."""

    index: int
    segments: tuple[Segment, ...]
    trace: Trace
    is_mapped: bool = True
    """Whether the addresses of segments are known, not only their sum."""
    rows: array[int] | None = None
    """The row of the file for each entry, where these differ."""


class Annotation(NamedTuple):
    """A range that a program or torch itself named, one end of it."""

    name: str
    is_start: bool
    device: int
    time: int


@dataclass(frozen=True, slots=True)
class Recording:
    """What a snapshot's file holds."""

    form: str
    """dict, list, html, timeline or chrome-trace."""
    torch_at_least: str | None
    """The first torch whose snapshots have these keys."""
    devices: tuple[Device, ...]
    stacks: Stacks
    annotations: tuple[Annotation, ...]
    settings: dict[str, str]
    """What of `allocator_settings` is set, as text."""
    unreadable: int
    """Segments, blocks and entries that lack what they must have; they are left out."""
    is_cut: bool = False
    """Whether the file is damaged or cut off behind its segments, so that its trace is not read."""
    gaps: tuple[Gap, ...] = ()
    """What the form of the file cannot tell, and how to record better."""
