"""The rows of tables that tools print of cards."""

from __future__ import annotations

from oomdoctor.case.event import Event

_ROWS = frozenset({"nvidia-smi-gpu-row", "gpustat-row", "cuda-jl-card-row"})


def card_share(event: Event) -> float | None:
    """Used over total of the card that a row shows; None where the event is no such row."""
    total = event.size("total_bytes")
    if event.signature not in _ROWS or not total:
        return None
    used, free = event.size("used_bytes"), event.size("free_bytes")
    if used is None and free is not None:
        used = total - free
    return None if used is None else used / total
