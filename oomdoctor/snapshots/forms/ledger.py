"""Allocations and frees that stand in a file without the state that they lead to: what lives at the end is worked out from them."""

from __future__ import annotations

from array import array

from oomdoctor.snapshots.recording import Action, Device, SavedBlock, Segment, Trace
from oomdoctor.snapshots.stacks import NO_STACK

_NOWHERE = 1 << 60
"""An address that no card has: for bytes of which only the sum is known."""


class Ledger:
    """One device's entries, as they come."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.rows = array("Q")
        self._live: dict[int, tuple[int, int]] = {}
        self._reserved = 0
        self._given = 0

    def allocate(self, address: int, size: int, *, stack: int = NO_STACK, time: int = 0, row: int = 0) -> None:
        """Note a block. One that lived there was freed without a word."""
        if address in self._live:
            self.free(address, self._live[address][0], time=time, row=row)
        self._live[address] = (size, stack)
        self._add(Action.ALLOC, address, size, stack, time, row)

    def free(self, address: int, size: int, *, time: int = 0, row: int = 0) -> None:
        """Note that a block is gone; one that was never allocated was there before."""
        size, stack = self._live.pop(address, (size, NO_STACK))
        self._add(Action.FREE_COMPLETED, address, size, stack, time, row)

    def reserve(self, reserved: int, *, time: int = 0, row: int = 0) -> None:
        """Note what is reserved from now on."""
        if not self.trace and not self._given:
            self._reserved = reserved
        change, self._reserved = reserved - self._reserved, reserved
        if change:
            self._add(Action.SEGMENT_ALLOC if change > 0 else Action.SEGMENT_FREE, _NOWHERE, abs(change), NO_STACK, time, row)

    def fail(self, size: int, *, time: int = 0, row: int = 0) -> None:
        """Note a request that failed; what the driver had is not known."""
        self._add(Action.OOM, 0, size, NO_STACK, time, row)

    def live(self) -> int:
        """Return the bytes of the blocks that live now and were allocated here."""
        return sum(size for size, _ in self._live.values())

    def device(self, index: int, allocated: int | None = None) -> Device:
        """Return the device; `allocated` is what lived at the end, where the file says it: the rest was there before."""
        blocks = [SavedBlock(address, size, size, True, False, stack) for address, (size, stack) in self._live.items()]
        before = 0 if allocated is None else allocated - self.live()
        if before > 0:
            blocks.append(SavedBlock(_NOWHERE, before, before, True, False, NO_STACK))
        held = Segment(_NOWHERE, max(self._reserved, sum(block.size for block in blocks)), 0, (0, 0), False, False, tuple(blocks))
        return Device(index, (held,), self.trace, is_mapped=False, rows=self.rows)

    def _add(self, action: Action, address: int, size: int, stack: int, time: int, row: int) -> None:
        self.trace.append(action, address, size, 0, time, stack)
        self.rows.append(row)
