"""Blocks of memory, neighbours in their segment, and the pools of those that are free."""

from __future__ import annotations

from bisect import bisect_left, insort


class Block:
    """A piece of a segment: in use, free, or of an expandable segment and not backed by memory."""

    __slots__ = ("address", "before", "behind", "in_use", "is_mapped", "is_waiting", "pool", "requested", "segment", "site", "size")

    def __init__(self, pool: Pool, address: int, size: int, segment: int) -> None:
        self.pool = pool
        self.address = address
        self.size = size
        self.segment = segment
        """The address of the segment, or of the range of addresses in which one grows."""
        self.before: Block | None = None
        self.behind: Block | None = None
        self.requested = 0
        self.site = 0
        self.in_use = False
        self.is_mapped = True
        self.is_waiting = False
        """Whether it was given back and cannot be used yet."""

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its segment."""
        return self.before is None and self.behind is None

    @property
    def extent(self) -> int:
        """Its size, and that of the addresses behind it into which it can grow."""
        behind = self.behind
        return self.size + (behind.size if behind is not None and not behind.is_mapped else 0)

    def cut(self, size: int) -> Block:
        """Make it so large, and return a block of what is behind."""
        rest = Block(self.pool, self.address + size, self.size - size, self.segment)
        rest.is_mapped = self.is_mapped
        rest.before, rest.behind = self, self.behind
        if self.behind is not None:
            self.behind.before = rest
        self.behind = rest
        self.size = size
        return rest

    def take_in(self, other: Block | None) -> None:
        """Join a free neighbour that is mapped or unmapped as this one is, and take it out of its pool."""
        if other is None or other.in_use or other.is_mapped != self.is_mapped:
            return
        other.pool.remove(other)
        if other is self.before:
            self.address = other.address
            self.before = other.before
            if self.before is not None:
                self.before.behind = self
        else:
            self.behind = other.behind
            if self.behind is not None:
                self.behind.before = self
        self.size += other.size


class Pool:
    """Free blocks: those with memory by size and address, those without by address."""

    def __init__(self, *, is_small: bool) -> None:
        self.is_small = is_small
        self.free: list[tuple[int, int, Block]] = []
        self.unmapped: list[tuple[int, Block]] = []

    def add(self, block: Block) -> None:
        """Put a block in."""
        if block.is_mapped:
            insort(self.free, (block.size, block.address, block))
        else:
            insort(self.unmapped, (block.address, block))

    def remove(self, block: Block) -> None:
        """Take a block out."""
        if block.is_mapped:
            del self.free[bisect_left(self.free, (block.size, block.address))]
        else:
            del self.unmapped[bisect_left(self.unmapped, (block.address,))]

    def at_least(self, size: int) -> int:
        """Return the place of the smallest block of so many bytes."""
        return bisect_left(self.free, (size,))
