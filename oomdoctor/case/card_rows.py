"""The rows of tables that tools print of cards."""

from __future__ import annotations

from oomdoctor.case.events import Event

_ROWS = frozenset({"nvidia-smi-gpu-row", "gpustat-row"})


def card_share(event: Event) -> float | None:
    """Used over total of the card that a row shows; None where the event is no such row."""
    used, total = event.size("used_bytes"), event.size("total_bytes")
    return used / total if event.signature in _ROWS and used is not None and total else None
