"""The JSON of `oomdoctor snapshot`, `oomdoctor/snapshot/v1`: additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from oomdoctor.report.wire.report_v1 import FindingV1
from oomdoctor.report.wire.settings_v1 import GapV1

Tag = Literal["oomdoctor/snapshot/v1"]
Why = Literal["fragmentation", "too-much-live", "one-large-request", "other-pool", "limit", "others-on-the-card", "unknown"]
HeldAt = Literal["oom", "peak", "end"]
StepsFrom = Literal["annotations", "loop", "none"]


class EndV1(Struct, frozen=True, kw_only=True):
    """The state when the snapshot was taken."""

    reserved_bytes: int
    requested_bytes: int
    """What the program asked for of the blocks in use, as the peak counts it."""
    allocated_bytes: int
    """These blocks as they are, which is what `torch.cuda.memory_allocated()` gives."""
    waiting_bytes: int
    """Blocks that the program freed and another stream still uses."""
    largest_free_block_bytes: int | None
    """Null where the file does not tell where blocks lay."""
    free_in_other_pools_bytes: int


class PeakV1(Struct, frozen=True, kw_only=True):
    """When most asked bytes lived."""

    position: int
    """The entry of the device's trace, from 0."""
    requested_bytes: int
    reserved_bytes: int


class NeighbourV1(Struct, frozen=True, kw_only=True):
    """A line whose blocks stand between the free pieces that would have held a request together."""

    site: str | None
    category: str
    bytes: int
    blocks: int


class OomV1(Struct, frozen=True, kw_only=True):
    """A request that failed."""

    position: int
    requested_bytes: int
    reserved_bytes: int
    device_free_bytes: int
    largest_free_block_bytes: int | None
    """Null where the file does not tell where blocks lay."""
    free_in_pool_bytes: int
    """Free bytes in the pool and stream of the request."""
    free_elsewhere_bytes: int
    live_requested_bytes: int
    survived: bool
    why: Why
    site: str | None
    """The innermost frame of the user that asked."""
    category: str
    beside: tuple[NeighbourV1, ...]


class HolderV1(Struct, frozen=True, kw_only=True):
    """What one line of the program held."""

    site: str | None
    """The innermost frame of the user, file:line:function as in the trace; null where no frame of Python was recorded."""
    frame: str | None
    category: str
    bytes: int
    blocks: int


class GrowthV1(Struct, frozen=True, kw_only=True):
    """What a line adds in each step and nobody frees."""

    site: str
    bytes_per_step: int
    steps: int
    held_bytes: int
    blocks: int


class DeviceV1(Struct, frozen=True, kw_only=True):
    """One card."""

    index: int
    history: bool
    entries: int
    end: EndV1
    peak: PeakV1
    ooms: tuple[OomV1, ...]
    holders_at: HeldAt
    """The moment at which the holders are counted: the failure that ended the run, else the peak, else the end."""
    holders: tuple[HolderV1, ...]
    steps_from: StepsFrom
    steps: int
    growth: tuple[GrowthV1, ...]


class FileV1(Struct, frozen=True, kw_only=True):
    """One of several files: the ranks of a run."""

    name: str
    form: str
    torch_at_least: str | None
    devices: tuple[DeviceV1, ...]


class SnapshotV1(Struct, frozen=True, kw_only=True):
    """What memory snapshots tell. Of several files the first stands in `form`, `torch_at_least` and `devices`, and all in `files`."""

    schema: Tag = "oomdoctor/snapshot/v1"
    oomdoctor: str
    form: str
    torch_at_least: str | None
    devices: tuple[DeviceV1, ...]
    files: tuple[FileV1, ...] = field(default_factory=tuple)
    findings: tuple[FindingV1, ...]
    gaps: tuple[GapV1, ...]
