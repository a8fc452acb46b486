"""What a snapshot's trace says of peak, failed requests and free memory, worked out another way than the package does.

No code is shared: lives of blocks are paired address by address, and reserved memory is looked at byte range by byte range.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from typing import Any, NamedTuple

_ALWAYS = -1


class Failed(NamedTuple):
    """A request that failed, in bytes."""

    position: int
    requested: int
    reserved: int
    device_free: int
    live_requested: int
    largest_free: int | None


class Answer(NamedTuple):
    """What one device's trace says."""

    peak_position: int
    peak_requested: int
    peak_reserved: int
    ooms: tuple[Failed, ...]


class Life(NamedTuple):
    """A block from the entry that made it (-1: before all) to the one that ended it (the number of entries: never)."""

    begin: int
    end: int
    address: int
    requested: int
    size: int


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def answers(data: bytes) -> dict[int, Answer]:
    """Return the answer for each device of a pickled snapshot that has a trace or segments."""
    return {index: _answer(segments, trace) for index, (segments, trace) in _devices(data).items()}


def lives(data: bytes) -> dict[int, list[Life]]:
    """Return the blocks of each device of a pickled snapshot, from their birth to their end."""
    return {index: _lives(segments, trace) for index, (segments, trace) in _devices(data).items()}


def _devices(data: bytes) -> dict[int, tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Return the segments and the trace of each device that has any."""
    value = _Plain(io.BytesIO(data)).load()
    segments, traces = (value, []) if isinstance(value, list) else (value["segments"], value.get("device_traces") or [])
    used = {segment["device"] for segment in segments} | {index for index, trace in enumerate(traces) if trace}
    return {
        index: ([segment for segment in segments if segment["device"] == index], traces[index] if index < len(traces) else [])
        for index in sorted(used)
    }


def _answer(segments: list[dict[str, Any]], trace: list[dict[str, Any]]) -> Answer:
    lives = _lives(segments, trace)
    changes, reserved = [0] * (len(trace) + 1), [0] * (len(trace) + 1)
    for life in lives:
        if life.begin < len(trace):
            changes[life.begin + 1] += life.requested
        if life.end < len(trace):
            changes[life.end + 1] -= life.requested
    reserved[0] = sum(segment["total_size"] for segment in segments)
    for number, entry in enumerate(trace):
        sign = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}.get(entry["action"], 0)
        reserved[number + 1] = sign * entry["size"]
        reserved[0] -= sign * entry["size"]
    live = _summed(changes)
    held = _summed(reserved)
    best = max(range(len(live)), key=lambda at: live[at])
    ooms = [_failed(number, entry, lives, live, held, segments, trace) for number, entry in enumerate(trace) if entry["action"] == "oom"]
    return Answer(max(0, best - 1), live[best], held[best], tuple(ooms))


def _summed(changes: list[int]) -> list[int]:
    out, total = [], 0
    for change in changes:
        total += change
        out.append(total)
    return out


def _lives(segments: list[dict[str, Any]], trace: list[dict[str, Any]]) -> list[Life]:
    ended = "free_completed" if any(entry["action"] == "free_completed" for entry in trace) else "free_requested"
    by_address: dict[int, list[tuple[int, bool, int]]] = defaultdict(list)
    for number, entry in enumerate(trace):
        if entry["action"] in ("alloc", ended):
            by_address[entry["addr"]].append((number, entry["action"] == "alloc", entry["size"]))
    at_end = {address: (block.get("requested_size", block["size"]), block["size"]) for address, block in _live_blocks(segments)}
    lives = []
    for address in {*by_address, *at_end}:
        begin = (_ALWAYS, 0)
        is_open = not by_address[address] or not by_address[address][0][1]
        for number, is_birth, size in by_address[address]:
            if is_birth:
                begin, is_open = (number, size), True
            elif is_open:
                lives.append(Life(begin[0], number, address, size, _block(size)))
                is_open = False
        if is_open and address in at_end:
            lives.append(Life(begin[0], len(trace), address, *at_end[address]))
    return lives


def _live_blocks(segments: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    out = []
    for segment in segments:
        at = segment.get("address", 0)
        for block in segment["blocks"]:
            at = block.get("address", at)
            if block["state"] != "inactive":
                out.append((at, block))
            at += block["size"]
    return out


def _block(requested: int) -> int:
    return max(512, (requested + 511) // 512 * 512)


def _failed(
    number: int,
    entry: dict[str, Any],
    lives: list[Life],
    live: list[int],
    held: list[int],
    segments: list[dict[str, Any]],
    trace: list[dict[str, Any]],
) -> Failed:
    """Work out the largest free piece for one request: of its stream, of the shared pool, of its kind of segment."""
    wants_small = entry["size"] <= 1 << 20
    edges = sorted({edge for begin, size, *_ in _ranges(segments, trace) for edge in (begin, begin + size)})
    own: list[tuple[int, int]] = []
    grows = any(segment.get("is_expandable") for segment in segments) or any(row["action"] == "segment_map" for row in trace)
    for begin, end in zip(edges, edges[1:], strict=False):
        piece = _owner_at(begin, number, segments, trace)
        if piece is None or piece[:2] != (entry["stream"], (0, 0)) or piece[2] != wants_small:
            continue
        if own and own[-1][1] == begin and (piece[3] or (grows and not wants_small)):
            own[-1] = (own[-1][0], end)
        else:
            own.append((begin, end))
    blocks = sorted((life.address, life.address + life.size) for life in lives if life.begin < number <= life.end)
    largest = 0
    for begin, end in own:
        at = begin
        for start, stop in blocks:
            if begin <= start < end:
                largest, at = max(largest, start - at), stop
        largest = max(largest, end - at)
    return Failed(number, entry["size"], held[number], entry["device_free"], live[number], largest)


def _ranges(segments: list[dict[str, Any]], trace: list[dict[str, Any]]) -> list[tuple[int, int]]:
    kept = [(segment["address"], segment["total_size"]) for segment in segments]
    return kept + [(entry["addr"], entry["size"]) for entry in trace if entry["action"].startswith("segment_")]


def _owner_at(
    address: int, number: int, segments: list[dict[str, Any]], trace: list[dict[str, Any]]
) -> tuple[int, tuple[int, int], bool, bool] | None:
    """Return stream, pool, kind and whether this is inside a segment, of the byte at an address before an entry; None: not reserved."""
    for entry in trace[number:]:
        if entry["action"].startswith("segment_") and entry["addr"] <= address < entry["addr"] + entry["size"]:
            if entry["action"] in ("segment_alloc", "segment_map"):
                return None
            return entry["stream"], (0, 0), entry["size"] == 2 << 20, entry["addr"] != address
    for segment in segments:
        if segment["address"] <= address < segment["address"] + segment["total_size"]:
            pool = tuple(segment.get("segment_pool_id", (0, 0)))
            return segment["stream"], (pool[0], pool[1]), segment["segment_type"] == "small", segment["address"] != address
    return None
