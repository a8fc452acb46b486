"""PyTorch's CUDA caching allocator for one stream, as c10/cuda/CUDACachingAllocator.cpp has it.

Left out: other streams and their events, private pools of CUDA graphs, and `garbage_collection_threshold`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from oomdoctor.simulation.blocks import Block, Pool
from oomdoctor.simulation.settings import (
    LARGE_SEGMENT,
    SEGMENT_STEP,
    SMALL_REQUEST,
    SMALL_SEGMENT,
    SMALLEST_BLOCK,
    AllocatorSettings,
    segment_size,
)

_FIRST_ADDRESS = 0x7F0000000000
"""Where the driver of the model begins. Addresses are not used twice."""
_UNLIMITED = 1 << 50

Action = Literal["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom"]


class TraceEntry(NamedTuple):
    """Something that the allocator did."""

    action: Action
    address: int
    """Of a request that failed: the bytes that the card had left."""
    size: int
    site: int


class OutOfMemory(Exception):
    """No free block serves a request, and the card has no room for another segment."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size
        """The request, rounded."""


class CachingAllocator:
    """Gives out blocks of a card with `capacity` bytes for torch, and counts them. Sizes are bytes."""

    def __init__(self, settings: AllocatorSettings, capacity: int | None = None) -> None:
        self.settings = settings
        self.capacity = _UNLIMITED if capacity is None else capacity
        self.allocated = self.reserved = 0
        self.most_allocated = self.most_reserved = 0
        self.flushes = 0
        """How often everything free was given back for a request that failed at first."""
        self.entries: list[TraceEntry] = []
        self.first_blocks: dict[int, Block] = {}
        """The first block of each segment, or range of addresses, by its address."""
        self._small, self._large = Pool(is_small=True), Pool(is_small=False)
        self._next_address = _FIRST_ADDRESS

    def allocate(self, requested: int, site: int = 0) -> Block:
        """Return a block for a request. Raise OutOfMemory where there is none."""
        size = self.settings.rounded(requested)
        pool = self._small if size <= SMALL_REQUEST else self._large
        block = self._free_block(pool, size) or self._new_block(pool, size, site)
        if self._splits(block, size):
            pool.add(block.cut(size))
        block.in_use, block.requested, block.site = True, requested, site
        self.allocated += block.size
        if self.allocated > self.most_allocated:
            self.most_allocated = self.allocated
        self.entries.append(TraceEntry("alloc", block.address, requested, site))
        return block

    def free(self, block: Block) -> None:
        """Take a block back: it is joined with free neighbours and kept."""
        if not block.is_waiting:
            self.release(block)
        self.entries.append(TraceEntry("free_completed", block.address, block.requested, block.site))
        block.in_use = block.is_waiting = False
        self._return(block)

    def release(self, block: Block) -> None:
        """Count a block no more, that serves no request yet: another stream may still be using it."""
        self.entries.append(TraceEntry("free_requested", block.address, block.requested, block.site))
        self.allocated -= block.size
        block.is_waiting = True

    def flush(self, site: int = 0) -> None:
        """Give segments back of which nothing is in use, and the pages of expandable ones (`torch.cuda.empty_cache`)."""
        for pool in (self._large, self._small):
            for _, _, block in tuple(pool.free):
                if self.settings.expandable:
                    self._unmap(block, site)
                elif block.is_whole:
                    self._release(block, site)

    def blocks(self) -> Iterator[Block]:
        """Yield all blocks, by address."""
        for _, first in sorted(self.first_blocks.items()):
            block: Block | None = first
            while block is not None:
                yield block
                block = block.behind

    def largest_free(self) -> int:
        """Return the size of the largest free block."""
        return max((pool.free[-1][0] for pool in (self._small, self._large) if pool.free), default=0)

    def _free_block(self, pool: Pool, size: int) -> Block | None:
        """Take the smallest free block that is large enough out of its pool."""
        free, at = pool.free, pool.at_least(size)
        if at == len(free):
            return None
        if self.settings.expandable:
            # What can grow counts with what it can grow to.
            while at + 1 < len(free) and free[at + 1][2].extent < free[at][2].extent:
                at += 1
        nearest, limit = free[at][0], self.settings.unsplit_from
        if limit is not None and (nearest >= limit if size < limit else nearest >= size + LARGE_SEGMENT):
            return None
        return free.pop(at)[2]

    def _new_block(self, pool: Pool, size: int, site: int) -> Block:
        block = self._from_driver(pool, size, site)
        if block is None and self._release_unsplit(pool, size, site):
            block = self._from_driver(pool, size, site)
        if block is None:
            self.flushes += 1
            self.flush(site)
            block = self._from_driver(pool, size, site)
        if block is None:
            self.entries.append(TraceEntry("oom", self.capacity - self.reserved, size, site))
            raise OutOfMemory(size)
        return block

    def _from_driver(self, pool: Pool, size: int, site: int) -> Block | None:
        if self.settings.expandable:
            return self._grown(pool, size, site)
        taken = segment_size(size)
        if self.reserved + taken > self.capacity:
            return None
        address = self._addresses(taken)
        block = Block(pool, address, taken, segment=address)
        self.first_blocks[block.address] = block
        self._count(taken)
        self.entries.append(TraceEntry("segment_alloc", block.address, taken, site))
        return block

    def _addresses(self, size: int) -> int:
        address = self._next_address
        self._next_address += -(-size // SEGMENT_STEP) * SEGMENT_STEP
        return address

    def _count(self, size: int) -> None:
        self.reserved += size
        if self.reserved > self.most_reserved:
            self.most_reserved = self.reserved

    def _splits(self, block: Block, size: int) -> bool:
        rest = block.size - size
        if block.pool.is_small or self.settings.expandable:
            return rest >= SMALLEST_BLOCK
        limit = self.settings.unsplit_from
        return (limit is None or size < limit) and rest > SMALL_REQUEST

    def _return(self, block: Block) -> None:
        """Join a block with what is free beside it, and put it into its pool."""
        before = block.before
        block.take_in(before)
        block.take_in(block.behind)
        if block.before is None:
            self.first_blocks[block.segment] = block
        block.pool.add(block)

    def _release_unsplit(self, pool: Pool, size: int, site: int) -> bool:
        """Give back as many of the blocks that are never split as make room for a request; return whether they do."""
        limit = self.settings.unsplit_from
        if limit is None or self.settings.expandable:
            return False
        least = max(size, limit)
        at = pool.at_least(least)
        if at < len(pool.free):
            self._release(pool.free[at][2], site)
            return True
        released = 0
        while released < least and pool.free and pool.free[-1][0] >= limit:
            released += pool.free[-1][0]
            self._release(pool.free[-1][2], site)
        return released >= least

    def _release(self, block: Block, site: int) -> None:
        block.pool.remove(block)
        del self.first_blocks[block.segment]
        self.reserved -= block.size
        self.entries.append(TraceEntry("segment_free", block.address, block.size, site))

    # Expandable segments: a range of addresses as large as the card, of which pages get memory as they are needed.

    def _grown(self, pool: Pool, size: int, site: int) -> Block | None:
        block = self._expandable_block(pool, size)
        if not block.is_mapped and not self._map(block, min(block.size, size), site):
            return None
        while block.size < size:
            behind = block.behind
            assert behind is not None  # noqa: S101 - there are addresses enough: _expandable_block
            if not self._map(behind, min(size - block.size, behind.size), site):
                return None
            block = behind
        pool.remove(block)
        return block

    def _expandable_block(self, pool: Pool, size: int) -> Block:
        """Return the lowest block at which free and unmapped ones are large enough together."""
        for _, block in pool.unmapped:
            before = block.before
            first = before if before is not None and not before.in_use else block
            bytes_there, piece = 0, first
            while bytes_there < size and not piece.in_use:
                bytes_there += piece.size
                if piece.behind is None:
                    break
                piece = piece.behind
            if bytes_there >= size:
                return first
        page = _page(pool)
        whole = _pages((self.capacity if self.capacity < _UNLIMITED else 1 << 42) * 9 // 8 + size, page)
        address = self._addresses(whole)
        made = Block(pool, address, whole, segment=address)
        made.is_mapped = False
        self.first_blocks[address] = made
        pool.add(made)
        return made

    def _map(self, block: Block, size: int, site: int) -> bool:
        """Give memory to the first pages of an unmapped block, and join it with what is free beside it."""
        taken = _pages(size, _page(block.pool))
        if self.reserved + taken > self.capacity:
            return False
        pool = block.pool
        pool.remove(block)
        if taken < block.size:
            pool.add(block.cut(taken))
        block.is_mapped = True
        self._count(taken)
        self.entries.append(TraceEntry("segment_map", block.address, taken, site))
        self._return(block)
        return True

    def _unmap(self, block: Block, site: int) -> None:
        """Take the memory of all pages that a free block fills."""
        page = _page(block.pool)
        begin = _pages(block.address - block.segment, page) + block.segment
        end = (block.address + block.size - block.segment) // page * page + block.segment
        if begin >= end:
            return
        pool = block.pool
        pool.remove(block)
        if begin > block.address:
            rest = block.cut(begin - block.address)
            pool.add(block)
            block = rest
        if block.address + block.size > end:
            pool.add(block.cut(end - block.address))
        block.is_mapped = False
        self.reserved -= end - begin
        self.entries.append(TraceEntry("segment_unmap", begin, end - begin, site))
        self._return(block)


def _page(pool: Pool) -> int:
    """Return the bytes by which an expandable segment grows."""
    return SMALL_SEGMENT if pool.is_small else LARGE_SEGMENT


def _pages(size: int, page: int) -> int:
    return -(-size // page) * page
