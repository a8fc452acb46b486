"""Requests of a run through the allocator: what is reserved, where the peak lies, and what fails on a card."""

from __future__ import annotations

from oomdoctor.simulation.allocator import CachingAllocator, OutOfMemory
from oomdoctor.simulation.blocks import Block
from oomdoctor.simulation.holders import holders
from oomdoctor.simulation.requests import RequestLog, Site
from oomdoctor.simulation.settings import AllocatorSettings
from oomdoctor.simulation.simulated_run import FailedRequest, SimulatedPhase, SimulatedRun


def replay(
    log: RequestLog, settings: AllocatorSettings | None = None, capacity: int | None = None
) -> tuple[SimulatedRun, CachingAllocator]:
    """Return what becomes of the requests where torch can have `capacity` bytes, and the allocator as it is in the end.

    It ends at the first request that fails. Without a capacity none does.
    """
    allocator = CachingAllocator(settings or AllocatorSettings(), capacity)
    progress = _Progress(log, allocator)
    failed = None
    try:
        progress.run()
    except OutOfMemory as refusal:
        failed = progress.failed(refusal)
    progress.end_phase()
    return (
        SimulatedRun(
            requests=progress.count,
            allocated=allocator.most_allocated,
            reserved=allocator.most_reserved,
            unused=progress.unused,
            flushes=allocator.flushes,
            phases=tuple(progress.phases),
            holders=holders(log, progress.fullest if failed is None else progress.position - 1),
            failed=failed,
        ),
        allocator,
    )


class _Progress:
    def __init__(self, log: RequestLog, allocator: CachingAllocator) -> None:
        self.phases: list[SimulatedPhase] = []
        self.count = self.unused = self.position = self.fullest = 0
        """`fullest` is how many requests there were when most was in use, `position` how many there are."""
        self._log, self._allocator = log, allocator
        self._phase, self._step, self._site = log.phases[0], 0, 0
        self._allocated = self._reserved = 0

    def run(self) -> None:
        live: dict[int, Block] = {}
        allocator = self._allocator
        for action, tensor, size, site in self._log.requests:
            self.position += 1
            if action == "alloc":
                self._site, self.count, before, most = site, self.count + 1, allocator.most_reserved, allocator.most_allocated
                live[tensor] = allocator.allocate(size, site)
                if allocator.allocated > self._allocated:
                    self._allocated = allocator.allocated
                if allocator.reserved > self._reserved:
                    self._reserved = allocator.reserved
                if allocator.most_allocated > most:
                    self.fullest = self.position
                if allocator.most_reserved > before:
                    self.unused = allocator.reserved - allocator.allocated
            elif action == "release":
                allocator.release(live[tensor])
            elif action == "free":
                allocator.free(live.pop(tensor))
            else:
                self.end_phase()
                self._phase, self._step = self._log.phases[site], tensor
                self._allocated, self._reserved = allocator.allocated, allocator.reserved

    def end_phase(self) -> None:
        if self._reserved:
            self.phases.append(self._now())

    def failed(self, refusal: OutOfMemory) -> FailedRequest:
        allocator = self._allocator
        return FailedRequest(
            phase=self._now(),
            size=refusal.size,
            place=place_name(self._log.sites[self._site]),
            allocated=allocator.allocated,
            reserved=allocator.reserved,
            free=allocator.capacity - allocator.reserved,
            largest_free=allocator.largest_free(),
        )

    def _now(self) -> SimulatedPhase:
        return SimulatedPhase(name=self._phase, step=self._step, allocated=self._allocated, reserved=self._reserved)


def place_name(site: Site) -> str:
    """Return an operation with the part of the model where it stands."""
    inner = site.frames[0].name if site.frames else ""
    return f"{site.operation} in {inner}" if inner else site.operation
