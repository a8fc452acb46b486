"""What a simulated allocator made of the requests of a run, in order."""

from __future__ import annotations

from msgspec import Struct


class SimulatedPhase(Struct, frozen=True, kw_only=True):
    """The most that was there at once in one phase of one step. Sizes are bytes."""

    name: str
    """`load`, `forward`, `backward` or `step`."""
    step: int
    """Counted from 1; 0 comes before the first."""
    allocated: int
    reserved: int


class BlockGroup(Struct, frozen=True, kw_only=True):
    """Blocks of one kind that live at the same time."""

    name: str
    """What they are (`parameter`, `optimizer state`), or the operation and the part of the model that gave them."""
    bytes: int
    blocks: int


class FailedRequest(Struct, frozen=True, kw_only=True):
    """The request for which nothing was left. Sizes are bytes."""

    phase: SimulatedPhase
    size: int
    place: str
    """The operation that asked, and the module where it is known."""
    allocated: int
    reserved: int
    free: int
    """What the card had left."""
    largest_free: int
    """The largest block that was reserved and free."""


class SimulatedRun(Struct, frozen=True, kw_only=True):
    """The memory of a run as torch would count it. Sizes are bytes."""

    requests: int
    """How many blocks were asked for."""
    allocated: int
    """The most that was in blocks in use: `max_memory_allocated`."""
    reserved: int
    """The most that was held of the driver: `max_memory_reserved`."""
    unused: int
    """What no block in use filled when the last byte of it was reserved."""
    flushes: int
    """How often everything free was given back to the driver, for a request that failed at first."""
    phases: tuple[SimulatedPhase, ...]
    holders: tuple[BlockGroup, ...] = ()
    """What filled the blocks when most was in use, or when the request failed; the largest first."""
    failed: FailedRequest | None = None
    """None for a run that found everything that it asked for."""

    @property
    def peak(self) -> SimulatedPhase:
        """The phase in which the most was reserved; the first of several."""
        return max(self.phases, key=lambda phase: phase.reserved)

    @property
    def fullest(self) -> SimulatedPhase:
        """The phase in which most was in tensors; the first of several."""
        return max(self.phases, key=lambda phase: phase.allocated)


class Simulation(Struct, frozen=True, kw_only=True):
    """A simulated run with its snapshot."""

    run: SimulatedRun
    snapshot: bytes
    """The file that `torch.cuda.memory._dump_snapshot` would write, up to the request that fails or the end of the last step."""
    capacity: int | None
    """What torch can have of the card; None where no card was named."""
