"""What PYTORCH_CUDA_ALLOC_CONF sets of the allocator, and the sizes that it cannot set (c10/cuda/CUDACachingAllocator.cpp)."""

from __future__ import annotations

from msgspec import Struct

MIB = 1 << 20
SMALLEST_BLOCK = 512
"""kMinBlockSize: every block is a multiple of it."""
SMALL_REQUEST = MIB
"""kSmallSize: requests up to it come from the small pool."""
SMALL_SEGMENT = 2 * MIB
"""kSmallBuffer."""
MIDDLE_REQUEST = 10 * MIB
"""kMinLargeAlloc: below it a request of the large pool gets a segment of LARGE_SEGMENT."""
LARGE_SEGMENT = 20 * MIB
"""kLargeBuffer."""
SEGMENT_STEP = 2 * MIB
"""kRoundLarge: larger segments are multiples of it."""


class AllocatorSettings(Struct, frozen=True, kw_only=True):
    """What can be set. Sizes are bytes."""

    expandable: bool = False
    """Whether segments grow (`expandable_segments`)."""
    divisions: int = 0
    """Into how many parts the way to the next power of two is divided (`roundup_power2_divisions`); 0 is none."""
    unsplit_from: int | None = None
    """The size from which blocks are not split (`max_split_size_mb`); None is no limit."""

    def rounded(self, size: int) -> int:
        """Return the size of the block that a request of so many bytes gets."""
        if size < SMALLEST_BLOCK:
            return SMALLEST_BLOCK
        if self.divisions > 1 and size > SMALLEST_BLOCK * self.divisions:
            return _next_division(size, self.divisions)
        return -(-size // SMALLEST_BLOCK) * SMALLEST_BLOCK


def segment_size(block: int) -> int:
    """Return the bytes that are requested from the driver for a block that no free one can serve."""
    if block <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if block < MIDDLE_REQUEST:
        return LARGE_SEGMENT
    return -(-block // SEGMENT_STEP) * SEGMENT_STEP


def read_settings(text: str) -> AllocatorSettings:
    """Read the value of PYTORCH_CUDA_ALLOC_CONF; what the model does not know is passed over."""
    known = dict(part.partition(":")[::2] for part in text.replace(" ", "").split(",") if ":" in part)
    divisions, limit = known.get("roundup_power2_divisions", ""), known.get("max_split_size_mb", "")
    return AllocatorSettings(
        expandable=known.get("expandable_segments", "").lower() == "true",
        divisions=int(divisions) if divisions.isdecimal() else 0,
        unsplit_from=int(limit) * MIB if limit.isdecimal() else None,
    )


def _next_division(size: int, divisions: int) -> int:
    floor = 1 << (size.bit_length() - 1)
    if floor == size:
        return size
    part = floor >> (divisions.bit_length() - 1)
    return floor << 1 if part == 0 else -(-size // part) * part
