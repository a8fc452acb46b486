"""Figures that no message prints but every message implies: sums, differences and shares of what it says.

Every name here can be used in a rule as `derived.<name>`. Nothing is guessed: a figure whose parts are missing is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.events import Event
from oomdoctor.case.incident import Part

_ROUNDING = 0.02
"""Figures are printed with two decimals, so sums of them may miss the total by a little."""


def derived(event: Event) -> dict[str, int | float | str | None]:
    """What follows from the figures of one message."""
    size = event.size
    total, free, requested, allocated = size("total_bytes"), size("free_bytes"), size("requested_bytes"), size("allocated_bytes")
    unused = _unused(event)
    out: dict[str, int | float | str | None] = {}
    if unused is not None:
        out["unallocated_bytes"] = unused
    if total:
        if requested is not None:
            out["request_share"] = round(requested / total, 4)
        if unused is not None:
            out["unallocated_share"] = round(unused / total, 4)
        if allocated is not None:
            out["allocated_share"] = round(allocated / total, 4)
        if free is not None and allocated is not None and unused is not None and allocated + unused <= total:
            out["unaccounted_bytes"] = max(0, total - free - allocated - unused)
            out["unaccounted_share"] = round(max(0, total - free - allocated - unused) / total, 4)
    if requested is not None and free is not None:
        out["free_covers_request"] = free >= requested
        if unused is not None:
            out["free_and_unallocated_cover_request"] = free + unused >= requested
    out.update(_neighbours(event, total))
    return out


def _unused(event: Event) -> int | None:
    """Memory that the allocator holds and no tensor uses."""
    unused, reserved, allocated = event.size("reserved_unallocated_bytes"), event.size("reserved_bytes"), event.size("allocated_bytes")
    if unused is not None:
        return unused
    if reserved is not None and allocated is not None:
        return max(0, reserved - allocated)
    return event.size("cached_bytes")


def _neighbours(event: Event, total: int | None) -> dict[str, int | float | str | None]:
    listed = event.fields.get("other_processes")
    if not isinstance(listed, tuple):
        return {}
    others = [one for one in listed if isinstance(one, Mapping)]
    used = [value for one in others if isinstance(value := one.get("used_bytes"), int)]
    pids = sorted(pid for one in others if isinstance(pid := one.get("pid"), int))
    out: dict[str, int | float | str | None] = {"other_processes_count": len(others), "other_processes_bytes": sum(used)}
    if total:
        out["other_share"] = round(sum(used) / total, 4)
    out["equal_neighbours"] = len(pids) > 1 and pids[-1] - pids[0] <= 8 * len(pids)
    return out


def ledger(event: Event) -> tuple[Part, ...]:
    """Where the memory of the card went, in parts that add up to its total; empty where the message does not tell."""
    total, free, allocated = event.size("total_bytes"), event.size("free_bytes"), event.size("allocated_bytes")
    if not total or free is None or allocated is None or "MPS" in event.text[:200] or allocated > total:
        return ()
    gpu = event.fields.get("gpu_index")
    of = f"gpu {gpu}" if gpu is not None else "gpu"
    pools = min(event.size("private_pools_bytes") or 0, allocated)
    unused = _unused(event) or 0
    process = event.size("process_bytes")
    parts = [
        ("live tensors", allocated - pools, "measured"),
        ("private pools", pools, "measured"),
        ("reserved but unallocated", unused, "measured"),
    ]
    if process:
        parts.append(("this process outside PyTorch", max(0, process - allocated - unused), "derived"))
    others = _neighbours(event, total).get("other_processes_bytes")
    if isinstance(others, int):
        parts.append(("other processes", others, "measured"))
    parts.append(("free", free, "measured"))
    rest = total - sum(size for _, size, _ in parts)
    if rest < -_ROUNDING * total:
        return ()
    out = [Part(what=what, bytes=size, of=of, source=source) for what, size, source in parts if size]
    if rest > 0:
        out.append(Part(what="unaccounted", bytes=rest, of=of, source="derived"))
    elif rest < 0 and out:
        largest = max(range(len(out)), key=lambda at: out[at].bytes)
        one = out[largest]
        out[largest] = Part(what=one.what, bytes=one.bytes + rest, of=one.of, source="derived")
    return tuple(out)
