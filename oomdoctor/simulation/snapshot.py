"""What the allocator did and how it ends, in the form of `torch.cuda.memory._snapshot`, which PyTorch's memory_viz draws.

The keys are those of torch 2.5 and later (torch/csrc/cuda/memory_snapshot.cpp, the docstring of torch/cuda/memory.py).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from oomdoctor import __version__
from oomdoctor.simulation.allocator import CachingAllocator, TraceEntry
from oomdoctor.simulation.blocks import Block
from oomdoctor.simulation.requests import RequestLog, Site

_FORM = "2.5"
_PROTOCOL = 4
"""memory_viz reads pickles up to it."""
_TICK = 10
"""Microseconds from one entry to the next: nobody knows when a simulated request is made, and the page wants times that rise."""

Fields = dict[str, object]


def snapshot(allocator: CachingAllocator, log: RequestLog) -> Fields:
    """Return the snapshot of one device."""
    frames = [_frames(site) for site in log.sites]
    settings = allocator.settings
    return {
        "segments": [_segment(blocks, frames, settings.expandable) for blocks in _segments(allocator)],
        "device_traces": [[_entry(entry, frames, number) for number, entry in enumerate(allocator.entries)]],
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": -1 if settings.unsplit_from is None else settings.unsplit_from,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": settings.expandable,
            "roundup_power2_divisions": {str(1 << power): settings.divisions for power in range(16)},
        },
        "external_annotations": [],
        "simulated_by": f"oomdoctor {__version__}, in the form of torch {_FORM}",
    }


def pickled(allocator: CachingAllocator, log: RequestLog) -> bytes:
    """Return the bytes of the file that `torch.cuda.memory._dump_snapshot` would write."""
    return pickle.dumps(snapshot(allocator, log), protocol=_PROTOCOL)


def _segments(allocator: CachingAllocator) -> Iterator[Sequence[Block]]:
    """Yield the blocks of each segment; of those that grow, of each stretch that has memory."""
    for (_, is_mapped), blocks in groupby(allocator.blocks(), key=_stretch):
        if is_mapped:
            yield tuple(blocks)


def _stretch(block: Block) -> tuple[int, bool]:
    return block.segment, block.is_mapped


def _segment(blocks: Sequence[Block], frames: Sequence[list[Fields]], expandable: bool) -> Fields:
    used = [block for block in blocks if block.in_use]
    active = sum(block.size for block in used)
    return {
        "device": 0,
        "address": blocks[0].address,
        "total_size": sum(block.size for block in blocks),
        "allocated_size": active - sum(block.size for block in used if block.is_waiting),
        "active_size": active,
        "requested_size": sum(block.requested for block in used),
        "stream": 0,
        "segment_type": "small" if blocks[0].pool.is_small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": expandable,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size,
                "requested_size": block.requested,
                "state": _state(block),
                "frames": frames[block.site] if block.in_use else [],
            }
            for block in blocks
        ],
    }


def _state(block: Block) -> str:
    if block.in_use:
        return "active_pending_free" if block.is_waiting else "active_allocated"
    return "inactive"


def _entry(entry: TraceEntry, frames: Sequence[list[Fields]], number: int) -> Fields:
    return {
        "action": entry.action,
        "device_free" if entry.action == "oom" else "addr": entry.address,
        "size": entry.size,
        "stream": 0,
        "time_us": number * _TICK,
        "frames": frames[entry.site],
    }


def _frames(site: Site) -> list[Fields]:
    frames: list[Mapping[str, object]] = [{"filename": "operation", "line": 0, "name": site.operation}]
    frames += [{"filename": frame.file, "line": frame.line, "name": frame.name} for frame in site.frames]
    return [dict(frame) for frame in frames]
