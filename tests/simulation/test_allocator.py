"""The allocator: what a request gets, what is kept, split, joined and given back (c10/cuda/CUDACachingAllocator.cpp)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from oomdoctor.simulation.allocator import CachingAllocator, OutOfMemory
from oomdoctor.simulation.blocks import Block
from oomdoctor.simulation.settings import MIB, AllocatorSettings, read_settings, segment_size

KIB = 1 << 10
PLAIN, GROWING = AllocatorSettings(), AllocatorSettings(expandable=True)
KINDS = [
    PLAIN,
    GROWING,
    AllocatorSettings(divisions=8),
    AllocatorSettings(unsplit_from=32 * MIB),
    AllocatorSettings(expandable=True, divisions=4),
]
FEW = hypothesis_settings(max_examples=60, deadline=None)


@pytest.mark.parametrize(("size", "block", "segment"), [
    pytest.param(1, 512, 2 * MIB, id="one byte is a block of 512 in a small segment"),
    pytest.param(513, 1024, 2 * MIB, id="sizes are multiples of 512"),
    pytest.param(MIB, MIB, 2 * MIB, id="1 MiB is still small"),
    pytest.param(MIB + 1, MIB + 512, 20 * MIB, id="above it the segment has 20 MiB"),
    pytest.param(10 * MIB - 512, 10 * MIB - 512, 20 * MIB, id="up to 10 MiB"),
    pytest.param(10 * MIB, 10 * MIB, 10 * MIB, id="from 10 MiB on a segment of its own"),
    pytest.param(11 * MIB, 11 * MIB, 12 * MIB, id="in steps of 2 MiB"),
])  # fmt: skip
def test_a_request_is_rounded_and_so_is_its_segment(size: int, block: int, segment: int) -> None:
    assert (PLAIN.rounded(size), segment_size(PLAIN.rounded(size))) == (block, segment)
    allocator = CachingAllocator(PLAIN)
    allocator.allocate(size)
    assert allocator.reserved == segment


@pytest.mark.parametrize(("size", "divisions", "rounded"), [
    pytest.param(1200 * KIB, 4, 1280 * KIB, id="1200 KiB: the documentation's own example, quarters between 1024 and 2048"),
    pytest.param(1024 * KIB, 4, 1024 * KIB, id="a power of two stays"),
    pytest.param(1900 * KIB, 4, 2048 * KIB, id="the last quarter ends at the next power"),
    pytest.param(1200 * KIB, 1, 1200 * KIB, id="one part is none"),
    pytest.param(1500, 4, 1536, id="small requests are rounded to 512 as ever"),
])  # fmt: skip
def test_rounding_to_parts_of_powers_of_two(size: int, divisions: int, rounded: int) -> None:
    assert AllocatorSettings(divisions=divisions).rounded(size) == rounded


@pytest.mark.parametrize(("text", "settings"), [
    pytest.param("expandable_segments:True", GROWING, id="growing segments"),
    pytest.param("max_split_size_mb:128, roundup_power2_divisions:8", AllocatorSettings(unsplit_from=128 * MIB, divisions=8), id="two options"),
    pytest.param("", PLAIN, id="nothing"),
    pytest.param("backend:cudaMallocAsync", PLAIN, id="what the model does not know"),
    pytest.param("max_split_size_mb:many", PLAIN, id="no number"),
])  # fmt: skip
def test_the_variable_is_read(text: str, settings: AllocatorSettings) -> None:
    assert read_settings(text) == settings


def test_the_smallest_block_that_is_large_enough_is_taken() -> None:
    allocator = CachingAllocator(PLAIN)
    large, _, close, _ = (allocator.allocate(size * MIB) for size in (40, 10, 30, 10))
    place = close.address
    allocator.free(large)
    allocator.free(close)
    assert allocator.allocate(28 * MIB).address == place


def test_a_large_block_is_split_only_where_more_than_1_mib_is_left() -> None:
    allocator = CachingAllocator(PLAIN)
    allocator.free(allocator.allocate(20 * MIB))
    assert allocator.allocate(19 * MIB).size == 20 * MIB
    allocator = CachingAllocator(PLAIN)
    allocator.free(allocator.allocate(20 * MIB))
    assert allocator.allocate(19 * MIB - 512).size == 19 * MIB - 512


def test_neighbours_join_when_they_are_free() -> None:
    allocator = CachingAllocator(PLAIN)
    parts = [allocator.allocate(5 * MIB) for _ in range(4)]
    assert allocator.reserved == 20 * MIB
    for place in (0, 2, 1):
        allocator.free(parts[place])
    assert allocator.largest_free() == 15 * MIB


def test_a_card_that_is_full_gets_back_what_is_free_before_a_request_fails() -> None:
    allocator = CachingAllocator(PLAIN, capacity=100 * MIB)
    allocator.free(allocator.allocate(60 * MIB))
    assert allocator.allocate(80 * MIB).size == 80 * MIB
    assert (allocator.flushes, allocator.reserved, allocator.most_reserved) == (1, 80 * MIB, 80 * MIB)


def test_fragments_stay_and_the_request_fails() -> None:
    allocator = CachingAllocator(PLAIN, capacity=40 * MIB)
    parts = [allocator.allocate(5 * MIB) for _ in range(8)]
    for part in parts[::2]:
        allocator.free(part)
    with pytest.raises(OutOfMemory):
        allocator.allocate(6 * MIB)
    assert (allocator.allocated, allocator.reserved, allocator.largest_free()) == (20 * MIB, 40 * MIB, 5 * MIB)
    assert allocator.entries[-1].action == "oom"


def test_growing_segments_put_the_same_free_pages_to_use() -> None:
    allocator = CachingAllocator(GROWING, capacity=80 * MIB)
    parts = [allocator.allocate(20 * MIB) for _ in range(4)]
    for part in parts[::2]:
        allocator.free(part)
    assert allocator.allocate(40 * MIB).size == 40 * MIB
    assert allocator.reserved == 80 * MIB


def test_a_block_above_the_limit_is_never_split_and_serves_no_small_request() -> None:
    allocator = CachingAllocator(AllocatorSettings(unsplit_from=32 * MIB), capacity=100 * MIB)
    allocator.free(allocator.allocate(64 * MIB))
    assert allocator.allocate(12 * MIB).size == 12 * MIB
    assert allocator.reserved == 76 * MIB
    # Another large one makes room for itself: the free one of 64 MiB is too large by more than 20 MiB, and is given back.
    assert allocator.allocate(40 * MIB).size == 40 * MIB
    assert (allocator.reserved, allocator.flushes) == (52 * MIB, 0)


def test_a_block_that_waits_for_another_stream_is_not_counted_and_not_used() -> None:
    allocator = CachingAllocator(PLAIN)
    block = allocator.allocate(30 * MIB)
    allocator.release(block)
    assert (allocator.allocated, allocator.largest_free()) == (0, 0)
    assert allocator.allocate(30 * MIB).address != block.address
    allocator.free(block)
    assert (allocator.allocated, allocator.largest_free()) == (30 * MIB, 30 * MIB)


requests = st.lists(
    st.tuples(st.booleans(), st.one_of(st.integers(1, 4 * KIB), st.integers(1, 4 * MIB), st.integers(1, 80 * MIB)), st.integers(0, 10_000)),
    max_size=80,
)


def serve(allocator: CachingAllocator, asked: list[tuple[bool, int, int]]) -> list[Block]:
    """Ask for blocks and give them back, and return those that are left."""
    live: list[Block] = []
    for frees, size, which in asked:
        if frees and live:
            allocator.free(live.pop(which % len(live)))
        else:
            try:
                live.append(allocator.allocate(size))
            except OutOfMemory:
                continue
    return live


@FEW
@given(requests, st.sampled_from(KINDS), st.sampled_from([None, 200 * MIB]))
def test_bytes_are_conserved(asked: list[tuple[bool, int, int]], kind: AllocatorSettings, capacity: int | None) -> None:
    allocator = CachingAllocator(kind, capacity)
    live = serve(allocator, asked)
    blocks = [block for block in allocator.blocks() if block.is_mapped]
    ends = [block.address + block.size for block in blocks]
    assert all(end <= behind.address for end, behind in zip(ends, blocks[1:]))
    assert {id(block) for block in blocks if block.in_use} == {id(block) for block in live}
    assert sum(block.size for block in live) == allocator.allocated <= allocator.reserved == sum(block.size for block in blocks)
    assert all(block.size >= kind.rounded(block.requested) for block in live)
    assert allocator.reserved <= allocator.most_reserved <= (capacity or allocator.most_reserved)


@FEW
@given(requests, st.sampled_from(KINDS))
def test_what_is_freed_is_kept_until_it_is_flushed(asked: list[tuple[bool, int, int]], kind: AllocatorSettings) -> None:
    allocator = CachingAllocator(kind)
    for block in serve(allocator, asked):
        allocator.free(block)
    assert (allocator.allocated, allocator.reserved) == (0, allocator.most_reserved)
    allocator.flush()
    assert allocator.reserved == 0


@FEW
@given(st.integers(10, 60), st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), max_size=60))
def test_blocks_of_one_size_need_as_many_as_live_at_once(size: int, order: list[tuple[bool, int]]) -> None:
    """A naive model without splitting: equal sizes fill each other's places."""
    allocator = CachingAllocator(PLAIN)
    live: list[Block] = []
    most = 0
    for frees, which in order:
        if frees and live:
            allocator.free(live.pop(which % len(live)))
        else:
            live.append(allocator.allocate(size * MIB))
        most = max(most, len(live))
    assert allocator.most_reserved == most * segment_size(size * MIB)
