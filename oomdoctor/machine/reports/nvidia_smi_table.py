"""The tables of `nvidia-smi` as facts of an environment: cards, MIG devices and processes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.case.environment import GpuProcess, MigSlice
from oomdoctor.machine.reports.merge_facts import MOST_GPUS, Fact
from oomdoctor.machine.reports.values import program_name, vendor_of
from oomdoctor.parse.nvidia_smi import SmiGpu, SmiHeader, SmiMigDevice, SmiProcess, read_rows

BEGINS = re.compile(r"^\s{0,40}\|?\s{0,4}NVIDIA-SMI \d{3}")
CONTINUES = re.compile(r"^\s{0,40}[|+]|^\s*$")
_MOST_SLICES = 8
_MOST_PROCESSES = 64


def read_table(lines: Sequence[str]) -> Iterator[Fact]:
    """Return what one printed table says."""
    slices: dict[str, list[MigSlice]] = {}
    processes: dict[str, list[GpuProcess]] = {}
    for row in read_rows("\n".join(lines)):
        if isinstance(row, SmiHeader):
            yield ("gpus_known",), True
            yield ("driver", "version"), row.driver
            if row.cuda is not None:
                yield ("driver", "cuda"), row.cuda
        elif isinstance(row, SmiMigDevice):
            name = f"GI {row.gpu_instance} CI {row.compute_instance}"
            slices.setdefault(str(row.index), []).append(MigSlice(name=name, used_bytes=row.used_bytes, total_bytes=row.total_bytes))
        elif isinstance(row, SmiProcess):
            process = GpuProcess(pid=row.pid, name=program_name(row.name), used_bytes=row.used_bytes)
            processes.setdefault(str(row.index), []).append(process)
        elif row.index is not None and row.index < MOST_GPUS:
            yield from _card(str(row.index), row)
    for index, devices in slices.items():
        yield ("gpus", index, "slices"), devices[:_MOST_SLICES]
    # A card without rows stays unknown: inside a container nobody else's processes are listed.
    for index, running in list(processes.items())[:MOST_GPUS]:
        yield ("gpus", index, "processes"), running[:_MOST_PROCESSES]
        yield ("gpus", index, "processes_known"), True


def _card(index: str, card: SmiGpu) -> Iterator[Fact]:
    name, ecc = card.name or "", card.ecc or "N/A"
    # A name that ends in dots is cut: `NVIDIA GeForce ...` could be any of forty cards.
    if not name.endswith("..."):
        yield ("gpus", index, "name"), name
    yield ("gpus", index, "vendor"), vendor_of(name) or "nvidia"
    if ecc != "N/A":
        yield ("gpus", index, "ecc"), ecc != "Off"
    if ecc.isdecimal():
        yield ("gpus", index, "ecc_uncorrected"), int(ecc)
    if card.used_bytes is not None and card.total_bytes is not None:
        yield ("gpus", index, "used_bytes"), card.used_bytes
        yield ("gpus", index, "total_bytes"), card.total_bytes
    if card.compute_mode is not None:
        yield ("gpus", index, "exclusive"), card.compute_mode.startswith("E.")
    if card.mig is not None:
        yield ("gpus", index, "mig"), card.mig
