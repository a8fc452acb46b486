"""Where a GPU's memory went, from the log alone: parts that add up exactly to the total, each measured or derived.

There are two sources: an allocator message, and what a server printed about its own plan before it gave up. If a server
printed the size of its weights and its KV cache, the live tensors in the allocator's message are split further.
"""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.event import Event
from oomdoctor.case.incident import LedgerEntry
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.findings.derived import other_processes, unused
from oomdoctor.findings.server_ledger import ledger_of

_ROUNDING = 0.02
"""Figures are printed with two decimals, so their sums may differ slightly from the total."""
_SMALLEST = 0.001
_LIVE = "live tensors"
_OUTSIDE = "this process outside PyTorch"
_Parts = list[tuple[str, int, str]]
"""(what, bytes, measured or derived)"""


def ledger(root: Event, ledgers: Sequence[ServerLedger] = ()) -> tuple[LedgerEntry, ...]:
    """Return the parts of the GPU's memory at the moment of `root`; empty if the log does not show them. `ledgers`: printed by servers."""
    planned = ledger_of(root, ledgers)
    parts = _of_message(root, planned)
    total = root.size("total_bytes")
    if not parts and planned is not None and _is_server(root):
        parts, total = _of_plan(planned)
    if not parts or not total:
        return ()
    gpu = root.fields.get("gpu_index")
    return _closed(parts, total, f"gpu {gpu}" if gpu is not None else "gpu")


def _of_message(event: Event, planned: ServerLedger | None) -> _Parts:
    """Return the parts stated by an allocator message."""
    total, free, allocated = event.size("total_bytes"), event.size("free_bytes"), event.size("allocated_bytes")
    if not total or free is None or allocated is None or "MPS" in event.text[:200] or allocated > total:
        return []
    pools = min(event.size("private_pools_bytes") or 0, allocated)
    held = unused(event) or 0
    process, others = event.size("process_bytes"), other_processes(event)
    parts = [*_split(allocated - pools, planned), ("private pools", pools, "measured"), ("reserved but unallocated", held, "measured")]
    if process:
        parts.append((_OUTSIDE, max(0, process - allocated - held), "derived"))
    if others is not None:
        parts.append(("other processes", others, "measured"))
    return [*parts, ("free", free, "measured")]


def _split(live: int, planned: ServerLedger | None) -> _Parts:
    """Return live tensors as weights, KV cache and the rest, if both were printed and fit within them."""
    known = () if planned is None else (("weights", planned.weights), ("KV cache", planned.cache))
    named = [(what, size) for what, size in known if size is not None and size > 0]
    rest = live - sum(size for _, size in named)
    if not named or rest < 0:
        return [(_LIVE, live, "measured")]
    return [*((what, size, "measured") for what, size in named), ("other live tensors", rest, "derived")]


def _of_plan(planned: ServerLedger) -> tuple[_Parts, int | None]:
    """Return the parts of a server's plan: its share of the GPU, and what the weights and the trial run leave for the KV cache."""
    total, budget = planned.total, planned.budget
    if not total or not budget or budget > total or planned.weights is None:
        return [], None
    known = (("weights", planned.weights), ("KV cache", planned.cache), ("activations", planned.activations))
    parts: _Parts = [(what, size, "measured") for what, size in known if size is not None and size > 0]
    parts.append((_OUTSIDE, max(0, planned.outside or 0), "measured"))
    parts.append(("left to others by the share", total - budget, "derived"))
    return parts, total


def _closed(parts: _Parts, total: int, of: str) -> tuple[LedgerEntry, ...]:
    """Return the parts plus the remainder to the total; empty if they exceed it by more than rounding."""
    rest = total - sum(size for _, size, _ in parts)
    if rest < -_ROUNDING * total:
        return ()
    outside = next((at for at, (what, _, _) in enumerate(parts) if what == _OUTSIDE), None)
    if outside is not None and 0 < rest <= _SMALLEST * total:
        # Less than the rounding of the printed figures: not a part of its own.
        parts[outside] = (_OUTSIDE, parts[outside][1] + rest, "derived")
        rest = 0
    out = [LedgerEntry(what=what, bytes=size, of=of, source=source) for what, size, source in parts if size]
    if rest > 0:
        out.append(LedgerEntry(what="unaccounted", bytes=rest, of=of, source="derived"))
    elif rest < 0 and out:
        largest = max(range(len(out)), key=lambda at: out[at].bytes)
        entry = out[largest]
        out[largest] = LedgerEntry(what=entry.what, bytes=entry.bytes + rest, of=entry.of, source="derived")
    return tuple(out)


def _is_server(event: Event) -> bool:
    return event.signature.startswith(("vllm-", "sglang-"))
