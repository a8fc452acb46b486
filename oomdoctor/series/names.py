"""What the name of a metric says: whose memory it is and in which unit; None where it is no memory in use.

Names: docs.wandb.ai system-metrics (`system.gpu.0.memoryAllocatedBytes`), mlflow.org system-metrics
(`system/gpu_0_memory_usage_megabytes`), torchtitan components/metrics.py (`memory/max_reserved(GiB)`).
"""

from __future__ import annotations

import re

from msgspec import Struct

from oomdoctor.case.recorded.series import Of
from oomdoctor.units import GIB, KIB, MIB

_LONGEST = 200
_SHARE = 1000
"""Thousandths of a percent."""
_MEMORY = re.compile(r"mem(?:ory)?(?![a-z])|mem(?:ory)?(?=[A-Z_])|memory[a-z]|\brss|\bvram", re.IGNORECASE)
_IN_USE = re.compile(r"used|usage|alloc|reserved|active|peak|max|rss|memory(?:_|\.|/)?(?:mb|gb|gib|mib|bytes)?\b", re.IGNORECASE)
_OTHER = re.compile(
    r"avail|free|total|limit|bandwidth|clock|temp|access|retr|ooms?\b|count|num_|/s\b|speed|disk|swap|utili[sz]ation(?!_mem)|bar1|time",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"(?:[\[(_./\s-]|(?<=[a-z]))(?P<unit>GiB|GB|MiB|MB|KiB|KB|bytes|megabytes|gigabytes|percent(?:age)?|%)\W*$", re.IGNORECASE
)
_CARD = re.compile(r"(?:gpu|cuda|card|device)(?:[._:/ -]?process)?[._:/ -]?(?P<card>\d{1,3})(?!\d)", re.IGNORECASE)
_HOST = re.compile(r"proc\.memory|system_memory|system\.memory|\brss|\bram\b|\bcpu", re.IGNORECASE)
_UNITS = {"g": GIB, "m": MIB, "k": KIB, "b": 1}


class Metric(Struct, frozen=True):
    """What a name says."""

    of: Of
    card: str | None
    scale: int
    is_share: bool = False


def read_name(text: str) -> Metric | None:
    """Return what the name of a metric says."""
    text = text[:_LONGEST]
    if _MEMORY.search(text) is None or _IN_USE.search(text) is None or _OTHER.search(text):
        return None
    card = _CARD.search(text)
    of: Of = "host" if card is None and _HOST.search(text) else "card"
    index = card["card"] if card else None
    if re.search(r"memoryAllocated$|system\.memory(?:_percent)?$", text):
        return Metric(of, index, _SHARE, is_share=True)  # Weights & Biases: percent
    unit = _UNIT.search(text)
    if unit is None:
        return None
    if unit["unit"].lower().startswith(("percent", "%")):
        return Metric(of, index, _SHARE, is_share=True)
    return Metric(of, index, _UNITS[unit["unit"][0].lower()])
