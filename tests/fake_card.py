"""A card without a driver, and torch's caching allocator on it. Becomes `torch/_C.py` of the package that fake_torch.py writes.

The allocator follows c10/cuda/CUDACachingAllocator.cpp (2.13): requests are rounded to 512 bytes; up to 1 MiB they are served from segments of
2 MiB, below 10 MiB from ones of 20 MiB, above from one of their own in steps of 2 MiB; the smallest free block that is large enough is taken,
split where enough is left, and joined with its free neighbours later; before a request fails, whole free segments go back to the driver.
Streams and private pools have segments of their own. Left out: expandable segments, and what PYTORCH_CUDA_ALLOC_CONF sets.

It stands on the standard library alone, for Python from 3.7 on. The environment says what the card is like: FAKE_CARD_BYTES; FAKE_CARD_FOLDER,
a folder in which every process on the card keeps what it holds; FAKE_CARD, how a request fails: `observed` (the default), `masked` (an
assert of NVML, before the observers are called) or `async` (an allocator that takes neither observers nor history).
"""

from __future__ import annotations

import functools
import os
import sys
import time
from bisect import bisect_left, insort
from typing import Any, Callable, Dict, List, Tuple

MIB = 1 << 20
CARD = int(os.environ.get("FAKE_CARD_BYTES", 1 << 30))
FOLDER = os.environ.get("FAKE_CARD_FOLDER")
CONTEXT = 300 * MIB if FOLDER else 0
"""What a process holds of the card beside its allocator."""
_NATIVE = ("_C.py", "_tensor.py")
"""Files that are C++ in torch: no frames of Python."""

Pool = Tuple[int, int, bool]
"""Private pool (0 is none), stream, whether it is that of small requests."""


class Block:
    """A piece of a segment; `before` and `behind` are its neighbours."""

    tell: Tuple[()] = ()
    errors: Tuple[()] = ()
    __slots__ = ("address", "before", "behind", "frames", "in_use", "pool", "requested", "size")

    def __init__(self, pool: Pool, address: int, size: int) -> None:
        self.pool, self.address, self.size = pool, address, size
        self.before: Block | None = None
        self.behind: Block | None = None
        self.in_use, self.requested, self.frames = False, 0, []  # type: bool, int, List[Dict[str, Any]]


OBSERVERS: List[Callable[[int, int, int, int], None]] = []
HISTORY: List[Any] = [None]
ENTRIES: List[Dict[str, Any]] = []
SEGMENTS: Dict[int, Block] = {}
"""The first block of each segment, by its address."""
FREE: Dict[Pool, List[Tuple[int, int, Block]]] = {}
NOW = {"allocated": 0, "reserved": 0, "requested": 0}
PEAK = dict(NOW)
COUNTS = {"retries": 0, "ooms": 0, "allocs": 0, "frees": 0}
ALLOWED: List[Any] = [None]
_NEXT = [0x7F0000000000]


class Refused:
    """A request that failed. Who asked calls `tell` and raises: so that no frame of Python stands between, as none does in torch.

    What is raised leaves the list, or it would hold its own frames, and they what lives in them.
    """

    def __init__(self, tell: List[Callable[[], None]], error: Exception) -> None:
        self.tell, self.errors = tell, [error]


def allocate(size: int, stream: int = 0, pool: int = 0) -> Block:
    """Return a block for a request, or fail as torch does."""
    made = ask(size, stream, pool)
    if isinstance(made, Block):
        return made
    for tell in made.tell:
        tell()
    raise made.errors.pop()


def ask(size: int, stream: int = 0, pool: int = 0) -> Block | Refused:
    """Return a block for a request, or what it failed with."""
    rounded = max(512, -(-size // 512) * 512)
    small = rounded <= MIB
    free = FREE.setdefault((pool, stream, small), [])
    at = bisect_left(free, (rounded,))
    block = free.pop(at)[2] if at < len(free) else _new_segment(rounded, (pool, stream, small))
    if isinstance(block, Refused):
        return block
    if block.size - rounded >= 512 if small else block.size - rounded > MIB:
        _cut(block, rounded)
    block.in_use, block.requested = True, size
    block.frames = frames() if HISTORY[0] else []
    _count("allocated", block.size)
    _count("requested", size)
    _trace("alloc", block.address, size, block.frames)
    return block


def free(block: Block) -> None:
    """Take a block back: it is joined with free neighbours and kept."""
    _trace("free_completed", block.address, block.requested, block.frames)
    _count("allocated", -block.size)
    _count("requested", -block.requested)
    block.in_use, block.requested, block.frames = False, 0, []
    for beside in (block.before, block.behind):
        if beside is not None and not beside.in_use:
            kept = FREE[beside.pool]
            del kept[bisect_left(kept, (beside.size, beside.address))]
            block = _joined(block, beside)
    insort(FREE[block.pool], (block.size, block.address, block))


def flush() -> None:
    """Give whole free segments back to the driver (`empty_cache`); those of private pools stay."""
    for pool, kept in FREE.items():
        for entry in [] if pool[0] else list(kept):
            if entry[2].before is None and entry[2].behind is None:
                kept.remove(entry)
                del SEGMENTS[entry[1]]
                COUNTS["frees"] += 1
                _count("reserved", -entry[0])
                _trace("segment_free", entry[1], entry[0], [])
    _tell_the_card()


def _new_segment(size: int, pool: Pool) -> Block | Refused:
    asked = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
    if not _has_room(asked):
        COUNTS["retries"] += 1
        flush()
        if not _has_room(asked):
            return _refused(size, asked)
    block = SEGMENTS[_NEXT[0]] = Block(pool, _NEXT[0], asked)
    _NEXT[0] += asked
    COUNTS["allocs"] += 1
    _count("reserved", asked)
    _tell_the_card()
    _trace("segment_alloc", block.address, asked, [])
    return block


def _has_room(asked: int) -> bool:
    return asked <= left() and (ALLOWED[0] is None or NOW["reserved"] + asked <= ALLOWED[0])


def _refused(size: int, asked: int) -> Refused:
    if os.environ.get("FAKE_CARD") == "masked":
        where = '"../c10/cuda/CUDACachingAllocator.cpp":1016, please report a bug to PyTorch. '
        return Refused([], RuntimeError("NVML_SUCCESS == r INTERNAL ASSERT FAILED at " + where))
    COUNTS["ooms"] += 1
    _trace("oom", left(), size, frames() if HISTORY[0] else [])
    import torch

    total = CARD if ALLOWED[0] is None else ALLOWED[0]
    tell: List[Callable[[], None]] = [functools.partial(observer, 0, asked, total, left()) for observer in OBSERVERS]
    return Refused(tell, torch.OutOfMemoryError(_message(asked, torch.__version__)))


def _message(asked: int, version: str) -> str:
    """Return what torch says, as it does where NVML does not know the processes: in a container."""
    live, held = NOW["allocated"], NOW["reserved"]
    if tuple(map(int, version.split(".")[:2])) < (2, 1):
        told = "CUDA out of memory. Tried to allocate %s (GPU 0; %s total capacity; %s already allocated; %s free; %s reserved in total by PyTorch)"
        return told % tuple(map(_words, (asked, CARD, live, left(), held)))
    allowed = "" if ALLOWED[0] is None else "%s allowed; " % _words(ALLOWED[0])
    told = (
        "CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of %s of which %s is free. "
        + allowed
        + "Of the allocated memory "
        "%s is allocated by PyTorch, and %s is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    )
    return told % tuple(map(_words, (asked, CARD, left(), live, held - live)))


def _words(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return "%.2f %s" % (size / unit, name)
    return "%d bytes" % size


def _cut(block: Block, size: int) -> None:
    rest = Block(block.pool, block.address + size, block.size - size)
    rest.before, rest.behind, block.size = block, block.behind, size
    if block.behind is not None:
        block.behind.before = rest
    block.behind = rest
    insort(FREE[rest.pool], (rest.size, rest.address, rest))


def _joined(block: Block, beside: Block) -> Block:
    first, second = (beside, block) if beside is block.before else (block, beside)
    first.size += second.size
    first.behind = second.behind
    if second.behind is not None:
        second.behind.before = first
    return first


def _count(name: str, size: int) -> None:
    NOW[name] += size
    if NOW[name] > PEAK[name]:
        PEAK[name] = NOW[name]


def left() -> int:
    """Return what the driver has left: the card without what the processes on it hold."""
    return CARD - CONTEXT - NOW["reserved"] - sum(held for pid, held in holders().items() if pid != os.getpid())


def holders() -> Dict[int, int]:
    """Return what each process that lives holds of the card."""
    held = {}
    for name in os.listdir(FOLDER) if FOLDER else ():
        if name.isdigit() and os.path.exists("/proc/" + name):
            with open(os.path.join(FOLDER or "", name)) as file:
                held[int(name)] = int(file.read() or 0)
    return held


def _tell_the_card() -> None:
    if FOLDER:
        path = os.path.join(FOLDER, str(os.getpid()))
        with open(path + ".part", "w") as file:
            file.write(str(CONTEXT + NOW["reserved"]))
        os.replace(path + ".part", path)


def frames() -> List[Dict[str, Any]]:
    """Return the stack of Python that asks, innermost first."""
    out, frame = [], sys._getframe(2)  # type: List[Dict[str, Any]], Any
    while frame is not None:
        if not frame.f_code.co_filename.endswith(_NATIVE):
            out.append({"filename": frame.f_code.co_filename, "line": frame.f_lineno, "name": frame.f_code.co_name})
        frame = frame.f_back
    return out


def _trace(action: str, address: int, size: int, stack: List[Dict[str, Any]]) -> None:
    if HISTORY[0] == "all":
        where = {"device_free" if action == "oom" else "addr": address}
        ENTRIES.append(dict(where, action=action, size=size, stream=0, time_us=int(time.time() * 1e6), frames=stack))


def stats(device: int) -> Dict[str, Any]:
    """Return the nested counters of a device; the second card is never used."""
    of: Callable[[int, int], Dict[str, Any]] = lambda now, peak: {"all": {"current": now, "peak": peak}}  # noqa: E731
    if device:
        return {"num_ooms": 0, "reserved_bytes": of(0, 0)}
    unused = NOW["reserved"] - NOW["allocated"]
    counters = {name + "_bytes": of(NOW[name], PEAK[name]) for name in NOW}
    return dict(
        counters,
        active_bytes=counters["allocated_bytes"],
        inactive_split_bytes=of(unused - sum(size for size, _, block in _whole()), 0),
        num_alloc_retries=COUNTS["retries"],
        num_ooms=COUNTS["ooms"],
        num_device_alloc=COUNTS["allocs"],
        num_device_free=COUNTS["frees"],
    )


def _whole() -> List[Tuple[int, int, Block]]:
    return [entry for kept in FREE.values() for entry in kept if entry[2].before is None and entry[2].behind is None]


def snapshot() -> Dict[str, Any]:
    """Return segments and blocks in the form of torch's own (2.5 and later)."""
    return {"segments": [_segment(address, first) for address, first in sorted(SEGMENTS.items())], "device_traces": [list(ENTRIES)]}


def _segment(address: int, first: Block) -> Dict[str, Any]:
    blocks, block = [], first  # type: List[Block], Any
    while block is not None:
        blocks.append(block)
        block = block.behind
    used = sum(block.size for block in blocks if block.in_use)
    pool, stream, small = first.pool
    return {
        "device": 0,
        "address": address,
        "total_size": sum(block.size for block in blocks),
        "allocated_size": used,
        "active_size": used,
        "requested_size": sum(block.requested for block in blocks),
        "stream": stream,
        "segment_type": "small" if small else "large",
        "segment_pool_id": (0, pool),
        "is_expandable": False,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size,
                "requested_size": block.requested,
                "state": "active_allocated" if block.in_use else "inactive",
                "frames": block.frames,
            }
            for block in blocks
        ],
    }


def refuse(what: str) -> None:
    """Fail where the allocator has not what is asked for."""
    if os.environ.get("FAKE_CARD") == "async":
        raise RuntimeError("cudaMallocAsync does not yet support " + what)


def attach(observer: Callable[[int, int, int, int], None]) -> None:
    """Call a function for each request that fails."""
    refuse("attachOutOfMemoryObserver")
    OBSERVERS.append(observer)


def record(enabled: Any) -> None:
    """Record stacks: `state` of what lives, `all` of every request, None nothing."""
    refuse("recordHistory")
    HISTORY[0] = enabled
