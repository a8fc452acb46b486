"""What the tables know of a card, and which cards a run sees."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from oomdoctor.case.environment import Gpu
from oomdoctor.knowledge.tables.csv_table import Row, table

_NONE_SHOWN = ("", "-1", "NoDevFiles")


def complete_card(gpu: Gpu) -> Gpu:
    """Return a card with what its name tells: its compute capability, and whether it shares its memory with the CPU.

    Its size is never taken from the name: several cards come in two sizes under one name.
    """
    row = find_card_row(gpu.name)
    if row is None:
        return gpu
    unified = gpu.unified if gpu.unified is not None else row["unified"] == "yes"
    return replace(gpu, compute_capability=gpu.compute_capability or row["compute_capability"] or None, unified=unified)


def find_card_row(name: str | None) -> Row | None:
    """Return the row of a card. Older drivers leave `NVIDIA` away."""
    bare = (name or "").removeprefix("NVIDIA ")
    if not bare:
        return None
    return next((row for row in table("cards") if bare in [known.removeprefix("NVIDIA ") for known in row["names"].split("|")]), None)


def mark_visible(gpus: tuple[Gpu, ...], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the cards with whether CUDA_VISIBLE_DEVICES shows them; unknown where it names them otherwise than by number.

    CUDA may count cards by speed, NVML counts them by slot: the numbers agree where CUDA is told to or all cards are alike.
    """
    shown = environ.get("CUDA_VISIBLE_DEVICES")
    if shown is None:
        return tuple(replace(gpu, visible=True) for gpu in gpus)
    if shown.strip() in _NONE_SHOWN:
        return tuple(replace(gpu, visible=False) for gpu in gpus)
    numbers = [number.strip() for number in shown.split(",")]
    alike = len({gpu.name for gpu in gpus}) < 2 or environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    if not alike or not all(re.fullmatch(r"\d{1,3}", number) for number in numbers):
        return gpus
    return tuple(replace(gpu, visible=str(gpu.index) in numbers) for gpu in gpus)
