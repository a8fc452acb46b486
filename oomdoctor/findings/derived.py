"""Figures that no message prints but that can be derived from every message: sums, differences and ratios.

Any of these can be used in a rule as `derived.<name>`. Nothing is guessed: a figure is left out if any of its inputs is missing.
Names end in `_bytes` (bytes) or `_share` (fraction of GPU memory, which can exceed 1); all others are booleans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from oomdoctor.case.event import Event
from oomdoctor.units import GIB

Figures = dict[str, Union[int, float, str, None]]

_NEAR = 8
"""The average distance between the PIDs of one launcher's ranks."""
_ROUNDING = 0.001
"""Figures are printed with two decimals: anything below this fraction of the GPU is rounding."""


def derived(event: Event) -> Figures:
    """Return what can be derived from the figures of one message."""
    return {**_shares(event), **_card(event), **_left(event), **_covers(event), **_neighbors(event), **_cache(event)}


def unused(event: Event) -> int | None:
    """Return the memory that the allocator holds and no tensor uses."""
    printed, reserved, allocated = event.size("reserved_unallocated_bytes"), event.size("reserved_bytes"), event.size("allocated_bytes")
    if printed is not None:
        return printed
    if reserved is not None and allocated is not None:
        return max(0, reserved - allocated)
    return event.size("cached_bytes")


def other_processes(event: Event) -> int | None:
    """Return the sum over all `Process N has ...`, or what was measured alongside the message."""
    used = _used_by_others(event)
    return sum(used) if used is not None else event.size("others_bytes")


def _shares(event: Event) -> Figures:
    """Return each printed figure as a fraction of the GPU's memory."""
    out: Figures = {}
    held, total = unused(event), event.size("total_bytes")
    if held is not None:
        out["unallocated_bytes"] = held
    if total:
        parts = {"request": event.size("requested_bytes"), "unallocated": held, "allocated": event.size("allocated_bytes")}
        out.update({f"{name}_share": round(size / total, 4) for name, size in parts.items() if size is not None})
    return out


def _card(event: Event) -> Figures:
    """Return what a message says about the GPU as a whole: how much of it is free, and how much is allocated beyond its size.

    `card_is_whole`: its size is printed as whole GiB. Drivers on Windows, and on Linux inside it, count all of a GPU's memory; those on
    Linux leave out what the driver reserves, so 24 GiB is reported as 23.6. `wanted_times`: the multiple of the available memory that a
    program says it needs.
    """
    out: Figures = {}
    required, available = event.size("required_bytes"), event.size("available_bytes")
    if required and available:
        out["wanted_times"] = round(required / available, 1)
    total, free, allocated = event.size("total_bytes"), event.size("free_bytes"), event.size("allocated_bytes")
    if not total:
        return out
    out["card_is_whole"] = total >= GIB and total % GIB == 0
    if free is not None:
        out["free_share"] = round(free / total, 4)
    if allocated is not None and allocated > total:
        out["beyond_card_bytes"] = allocated - total
    return out


def _left(event: Event) -> Figures:
    """Return what is left of the GPU's memory after subtracting everything the message names.

    `unaccounted`: neither free nor PyTorch's; other processes, sibling ranks, contexts. `neither`: neither free nor allocated,
    if the message does not say what is reserved; it includes the allocator's cache.
    """
    total, free, allocated, held = event.size("total_bytes"), event.size("free_bytes"), event.size("allocated_bytes"), unused(event)
    if not total or free is None or allocated is None or allocated + (held or 0) > total:
        return {}
    rest = max(0, total - free - allocated - (held or 0))
    name = "neither" if held is None else "unaccounted"
    if rest < _ROUNDING * total:
        rest = 0
    return {f"{name}_bytes": rest, f"{name}_share": round(rest / total, 4)}


def _covers(event: Event) -> Figures:
    """Return whether the free memory, alone or with what is held, would have been enough for the request, and how much would be left."""
    requested, free, held = event.size("requested_bytes"), event.size("free_bytes"), unused(event)
    if requested is None or free is None:
        return {}
    out: Figures = {"free_covers_request": free >= requested}
    if free >= requested:
        out["spare_bytes"] = free - requested
    if held is not None:
        out["free_and_unallocated_cover_request"] = free + held >= requested
    neither = _left(event).get("neither_bytes")
    if isinstance(neither, int):
        out["free_and_neither_cover_request"] = free + neither >= requested
    return out


def _cache(event: Event) -> Figures:
    """Return how many times the available KV cache one full-length request needs, and the length that the cache holds."""
    needed, available = event.size("kv_needed_bytes"), event.size("kv_available_bytes")
    lengths = (event.size(name) for name in ("estimated_max_len", "kv_capacity_tokens", "kv_tokens"))
    length = next((size for size in lengths if size), None)
    if needed is None:
        needed, available = event.size("max_model_len"), length
    out: Figures = {"kv_needed_times": round(needed / available, 2)} if needed and available and available > 0 else {}
    tokens, free = event.size("tokens_requested"), event.size("tokens_available")
    if tokens is not None and free is not None:
        out["cache_covers_request"] = free >= tokens
    return out if length is None else {**out, "fitting_length": length}


def _neighbors(event: Event) -> Figures:
    """Return the other processes in the message; ranks of one run have adjacent PIDs and use the same amount."""
    used, total, measured = _used_by_others(event), event.size("total_bytes"), event.size("others_bytes")
    listed = event.fields.get("other_processes")
    if used is None or not isinstance(listed, tuple):
        known = measured is not None and total
        return {"other_processes_bytes": measured, "other_share": round((measured or 0) / (total or 1), 4)} if known else {}
    pids = sorted(pid for process in listed if isinstance(process, Mapping) and isinstance(pid := process.get("pid"), int))
    out: Figures = {"other_processes_count": len(listed), "other_processes_bytes": sum(used)}
    if total:
        out["other_share"] = round(sum(used) / total, 4)
    out["equal_neighbours"] = len(pids) > 1 and pids[-1] - pids[0] <= _NEAR * len(pids)
    return out


def _used_by_others(event: Event) -> list[int] | None:
    listed = event.fields.get("other_processes")
    if not isinstance(listed, tuple):
        return None
    return [used for process in listed if isinstance(process, Mapping) and isinstance(used := process.get("used_bytes"), int)]
