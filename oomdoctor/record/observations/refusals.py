"""What requests for memory of a card failed with: in torch's own numbers, so that the same rules judge it as judge its messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.case.event import Event, Value
from oomdoctor.parse.observer import Observer
from oomdoctor.record.evidence import CardSample, RefusedRequest, RunRecord, Sample
from oomdoctor.record.observations.over_time import PHASES
from oomdoctor.record.read_folder import RankEvidence, RunEvidence

_WENT_ON = 30.0
"""Seconds of counters after a failure: nothing that only cleans up takes so long."""
_NEAR = 5.0
"""A sample of the cards tells of a failure that came at most so many seconds after it."""
_CONTEXT = 1 << 30
"""What a process may hold of a card beside its allocator: context, kernels, libraries (300 to 900 MiB; facts of NVIDIA's docs)."""
_ALLOWED = 0.97
"""A process that may have less than this share of the card has a limit set; drivers keep 1 to 2 % for themselves."""
_FRAME = re.compile(r"(?P<file>[^\n\"]{1,300}):(?P<line>\d{1,9}):(?P<name>[^\n]{1,120})")
_MOST_FRAMES = 60
_OF_A_DEVICE = re.compile(
    r"(?:CUDA|HIP|XPU|NPU|MUSA|MLU|MPS)\b[^\n]{0,20}out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED|NVML_SUCCESS|UR_RESULT_ERROR_OUT_OF"
)
_OF_A_LIBRARY = re.compile(r"\b(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|HIPBLAS|MIOPEN)_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED)\b")
_OF_THE_HOST = re.compile(r"\bMemoryError\b|DefaultCPUAllocator|Cannot allocate memory|unable to mmap|bad_alloc")
"""What an exception tells of that no observer saw: which of them refused memory."""
_ROOM_OF_A_LIBRARY, _FULL = 256 << 20, 0.01
"""A library that starts takes handles and workspaces of some ten to some hundred MiB (cuBLAS: 8 to 32 MiB for each handle and stream)."""


def refusal_events(see: Observer, evidence: RunEvidence, rank: RankEvidence, refused: RefusedRequest) -> Iterator[Event]:
    """Yield what was asked, allowed, free and held when a request failed; where no device's allocator refused it, whether it was full."""
    card = _card(evidence.samples, refused, evidence.run)
    held: dict[str, Value | None] = {
        "gpu_index": max(0, refused.device or 0),
        "rank": rank.rank,
        "allocated_bytes": counter(refused.stats, "allocated_bytes"),
        "reserved_bytes": counter(refused.stats, "reserved_bytes"),
        "others_bytes": None if card is None else _of_others(evidence, card, refused),
    }
    if is_of_something_else(rank, refused):
        yield from _of_a_library(see, rank, held, card)
        return
    if went_on(evidence, rank, refused):
        yield see.event("watched-survived-refusal", {"gpu_index": held["gpu_index"], "rank": rank.rank})
    else:
        total, limit = refused.total_bytes, None
        if card is not None and card.total and total and total < _ALLOWED * card.total:
            total, limit = card.total, total
        request: dict[str, Value | None] = {
            "requested_bytes": refused.driver_request_bytes,
            "total_bytes": total,
            "limit_bytes": limit,
            "free_bytes": refused.free_bytes,
            "failed_step": refused.step,
        }
        yield replace(see.event("watched-refusal", {**held, **request}), phase=refused.phase if refused.phase in PHASES else None)
    if refused.gradients is not None:
        yield see.event("watched-gradients" if refused.gradients else "watched-no-gradients", {"rank": rank.rank})


def is_of_something_else(rank: RankEvidence, refused: RefusedRequest) -> bool:
    """Return whether no allocator of a device refused it: a library did not start, or the host had no memory, as the exception says."""
    if refused.driver_request_bytes is not None or rank.exception is None:
        return False
    message = rank.exception.traceback or rank.exception.text
    return _OF_A_DEVICE.search(message) is None and (_OF_A_LIBRARY.search(message) or _OF_THE_HOST.search(message)) is not None


def _of_a_library(see: Observer, rank: RankEvidence, held: dict[str, Value | None], card: CardSample | None) -> Iterator[Event]:
    """Yield that a library found the card full, where it failed for that."""
    message = rank.exception.traceback if rank.exception is not None else ""
    if card is not None and card.used is not None and card.total and _OF_A_LIBRARY.search(message):
        free = max(0, card.total - card.used)
        if free < max(_ROOM_OF_A_LIBRARY, _FULL * card.total):
            seen = {**held, "total_bytes": card.total, "free_bytes": free}
            yield see.event("watched-library-found-full-card", seen)


def first_rank_events(see: Observer, evidence: RunEvidence) -> Iterator[Event]:
    """Yield which rank was refused first, and what it and the others held then."""
    failed = [(refused, rank.rank) for rank in evidence.ranks if rank.rank is not None for refused in rank.ooms[:1]]
    if not failed or len(evidence.ranks) < 2:
        return
    refused, first = min(failed, key=lambda pair: (pair[0].time, pair[1]))
    own = counter(refused.stats, "reserved_bytes")
    others = [held for rank in evidence.ranks if rank.rank not in (None, first) and (held := _held(rank, refused.time)) is not None]
    if own is not None and others:
        beside = {"other_ranks": len(others), "other_ranks_least_bytes": min(others), "other_ranks_most_bytes": max(others)}
        yield see.event("watched-first-rank", {"first_rank": first, "first_rank_bytes": own, **beside})


def frames_of(stack: Sequence[str]) -> list[tuple[str, int, str]]:
    """Return file, line and function of each frame of a recorded stack; what is none is left out."""
    frames = [frame for line in stack[:_MOST_FRAMES] if (frame := _FRAME.fullmatch(line)) is not None]
    return [(frame["file"], int(frame["line"]), frame["name"]) for frame in frames]


def traceback_of(stack: Sequence[str]) -> str:
    """Return a recorded stack, innermost first, as Python prints one; empty where it has no frames."""
    frames = [f'  File "{file}", line {line}, in {name}\n' for file, line, name in reversed(frames_of(stack))]
    return "".join(["Traceback (most recent call last):\n", *frames]) if frames else ""


def went_on(evidence: RunEvidence, rank: RankEvidence, refused: RefusedRequest) -> bool:
    """Return whether the program survived: it ended well, or counted on for long."""
    if rank.exception is None and rank.end is not None and _ended_well(evidence.run, rank.pid):
        return True
    times = [at for at in (rank.ring.column("t")[-1:] if rank.ring is not None else ()) if at is not None]
    return bool(times) and times[-1] - refused.time > _WENT_ON


def _ended_well(run: RunRecord | None, pid: int) -> bool:
    if run is None:
        return False
    code = next((process.exit_code for process in run.processes if process.pid == pid and process.exit_code is not None), run.exit_code)
    return code == 0


def _card(samples: Sequence[Sample], refused: RefusedRequest, run: RunRecord | None) -> CardSample | None:
    """Return the card of a failure as it was seen last before it."""
    near = [sample for sample in samples if sample.cards and sample.t <= refused.time + 1 and refused.time - sample.t <= _NEAR]
    if not near:
        return None
    index = _physical(refused.device or 0, run)
    seen = [card for sample in near for card in sample.cards if card.index == index or len(sample.cards) == 1]
    # A sample that came after the end knows no process of the run any more.
    return next((card for card in reversed(seen) if card.ours is not None), seen[-1] if seen else None)


def _physical(device: int, run: RunRecord | None) -> int | None:
    """Return which card a device of the program is, where CUDA_VISIBLE_DEVICES renumbers them."""
    visible = run.variables.get("CUDA_VISIBLE_DEVICES", "") if run is not None else ""
    listed = [word.strip() for word in visible.split(",") if word.strip()]
    if not listed:
        return device
    return int(listed[device]) if device < len(listed) and listed[device].isdecimal() and len(listed[device]) < 5 else None


def _of_others(evidence: RunEvidence, card: CardSample, refused: RefusedRequest) -> int | None:
    """Return what processes of others hold of a card: what is not ours, or at least what ours cannot explain."""
    if card.used is None:
        return None
    if card.ours is not None:
        return max(0, card.used - card.ours)
    beside = [rank for rank in evidence.ranks if any(other.device == refused.device for other in rank.ooms) or rank.ooms == []]
    held = [counter(refused.stats, "reserved_bytes"), *(_held(rank, refused.time) for rank in beside if refused not in rank.ooms)]
    if held[0] is None:
        return None
    rest = card.used - sum((size or 0) + _CONTEXT for size in held)
    return rest if rest > 0 else None


def _held(rank: RankEvidence, at: float) -> int | None:
    """Return what the allocator of a process held last before a moment."""
    if rank.ring is None:
        return None
    rows = zip(rank.ring.column("t"), rank.ring.column("reserved"), strict=True)
    before = [held for time, held in rows if held is not None and time is not None and time <= at + 1 and 0 <= held < 1 << 60]
    return int(before[-1]) if before else None


def counter(stats: dict[str, object], name: str) -> int | None:
    """Return a current figure of the allocator's raw counters: `{name: {all: {current: ...}}}`, or flattened as memory_stats gives it."""
    value: object = stats.get(name)
    for key in ("all", "current"):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        value = stats.get(f"{name}.all.current")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
