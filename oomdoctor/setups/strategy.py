"""How a run is distributed across GPUs, from a few words: `zero3`, `fsdp 32 + tp 8`, `ddp + device_map`."""

from __future__ import annotations

import re

from msgspec.structs import replace

from oomdoctor.case.setup import Engine, Layout

_PART = re.compile(
    r"(distributeddataparallel|dataparallel|zero|megatron|fsdp|hsdp|ddp|dp|tp|pp|cp|ep|tensor parallel|pipeline parallel|sequence parallel"
    r"|device_map|single)[- ]?(\d{1,6})?"
)
_SIZES = {
    "tp": "tensor",
    "tensor parallel": "tensor",
    "pp": "pipeline",
    "pipeline parallel": "pipeline",
    "cp": "context",
    "sequence parallel": "context",
    "ep": "expert",
}


STRATEGIES = ("zero2", "zero3", "fsdp2", "fsdp", "ddp", "dp", "device_map", "single", "tp 2", "pp 2", "cp 2", "ep 2", "megatron")
"""Strategies as people write them."""
_NONE = frozenset({"", "no", "none"})


def is_strategy(strategy: str) -> bool:
    """Return whether a text names a way to distribute a run."""
    return strategy.strip().lower() in _NONE or _PART.search(strategy.lower()) is not None


def layout_from_strategy(strategy: str, cards: int) -> Layout:
    """Return the layout that a strategy means on this many GPUs."""
    engine: Engine = "ddp" if cards > 1 else "none"
    stage, sizes = 0, dict[str, int]()
    for word, number in _PART.findall(strategy.lower()):
        if word == "zero":
            engine, stage = "deepspeed", min(3, int(number or 2))
        elif word == "megatron":
            # Its distributed optimizer shards what ZeRO-1 shards.
            engine, stage = "deepspeed", 1
            sizes["wide_gradients"] = True
        elif word in ("fsdp", "hsdp"):
            # `fsdp2` is the second version; a number after a space is the size of the group.
            engine, stage = ("fsdp2" if number == "2" and "fsdp2" in strategy.lower() else "fsdp1"), 3
        elif word == "dataparallel" and cards > 1:
            engine, stage = "dp", 0
        elif word == "device_map":
            engine, stage = "device_map", 0
        elif word in _SIZES:
            sizes[_SIZES[word]] = max(1, int(number or 1))
    if "fsdp-ddp" in strategy.lower():
        engine, stage = "ddp", 0
    if engine == "device_map" and "ddp" in strategy.lower():
        # Each replica is distributed across some of the GPUs; two is the minimum.
        cards = max(2, cards // 2)
    return replace(Layout(engine=engine, cards=max(1, cards), stage=stage), **sizes)
