"""The tables printed by `nvidia-smi`, with drivers 384 to 610: header, GPUs, MIG devices and processes.

Columns moved over the years; the cells kept their form. From 610 the header says KMD Version and CUDA UMD Version
(docs.nvidia.com/deploy/nvidia-smi, change log).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Union

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.units import MIB

DRIVER_KEYS = ("Driver Version", "KMD Version")
CUDA_KEYS = ("CUDA Version", "CUDA UMD Version")
"""What the table header and `nvidia-smi -q` call the two versions, up to 600 and from 610."""

_LINE = re.compile(r"[^\n]+")
_HEADER = re.compile(
    rf"\|\s{{1,4}}NVIDIA-SMI\s{{1,4}}(?P<smi>[\d.]{{3,16}}\d)\s{{1,40}}(?:{'|'.join(DRIVER_KEYS)}):\s{{1,4}}(?P<driver>\d{{3}}\.\d{{1,3}}(?:\.\d{{1,3}})?)"
    rf"(?:\s{{1,40}}(?:{'|'.join(CUDA_KEYS)}):\s{{1,4}}(?P<cuda>\d{{1,2}}\.\d{{1,2}}))?"
)
_CARD = re.compile(
    r"\|\s{1,6}(?P<index>\d{1,3})\s{1,6}(?P<name>\S[^|\n]{0,60}?)\s{1,40}(?:On|Off|TCC|WDDM|MCDM|N/A)\s{0,6}\|"
    r"\s{0,6}(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)(?:\s{1,12}\S{1,4}\s{0,4}\|\s{0,24}(?P<ecc>\d{1,9}|N/A|Off|On)\s{0,6}\|)?"
)
_USAGE = r"(?P<used>\d{1,8})MiB\s{0,4}/\s{0,4}(?P<total>\d{1,8})(?P<unit>MiB)"
_MEMORY = re.compile(
    rf"{_USAGE}(?:(?P<cell_end>\s{{0,4}}\|)(?:\s{{0,12}}\S{{1,6}}\s{{1,12}}(?P<mode>Default|E\. Process|E\. Thread|Prohibited))?)?"
)
_BAR1 = re.compile(r"\|\s{10,40}\|\s{1,40}\d{1,8}MiB\s{0,4}/")
"""The second line of a MIG device: its window on the PCI bus, which is not GPU memory."""
_MIG_MODE = re.compile(r"\|\s{1,60}(?P<mode>Enabled|Disabled)\*?\s{0,4}\|\s*$")
_MIG_DEVICE = re.compile(
    rf"\|\s{{1,6}}(?P<index>\d{{1,3}})\s{{1,8}}(?P<gi>\d{{1,3}})\s{{1,8}}(?P<ci>\d{{1,3}})\s{{1,8}}(?P<device>\d{{1,3}})\s{{1,8}}\|\s{{1,24}}{_USAGE}"
)
_PROCESS = re.compile(
    r"\|\s{1,8}(?P<index>\d{1,3})\s{1,8}(?:(?:N/A|\d{1,3})\s{1,8}(?:N/A|\d{1,3})\s{1,20})?(?P<pid>\d{1,9})\s{1,12}(?P<type>C\+G|M\+C|C|G)\s{1,8}"
    r"(?P<name>\S[^|\n]{0,120}?)\s{1,80}(?:(?P<used>\d{1,8})MiB|N/A)\s{0,12}\|"
)
_WHOLE = re.compile(r"\| Processes:[^\n]{0,120}\n(?:\|[^\n]{0,120}\n){1,200}\+-{20,120}\+")
_OTHER_TABLES = ("MIG devices:", "Processes:")


class SmiRow(Struct, frozen=True, kw_only=True):
    """One item of a table, and its location in the text."""

    start: int
    end: int


class SmiHeader(SmiRow, frozen=True, kw_only=True):
    """The versions above a table."""

    smi: str
    driver: str
    cuda: str | None = None


class SmiGpu(SmiRow, frozen=True, kw_only=True):
    """A GPU: two or three lines. If its first line is missing, `index`, `name` and `bus_id` are None."""

    index: int | None = None
    name: str | None = None
    """As printed: one that ends in dots is truncated."""
    bus_id: str | None = None
    ecc: str | None = None
    """`Off`, `On`, `N/A`, or the number of errors that ECC could not correct."""
    used_bytes: int | None = None
    total_bytes: int | None = None
    compute_mode: str | None = None
    """`Default`, `E. Process`, `E. Thread`, `Prohibited`."""
    mig: bool | None = None


class SmiMigDevice(SmiRow, frozen=True, kw_only=True):
    """An instance of a GPU that is partitioned."""

    index: int
    """The index of the GPU."""
    gpu_instance: int
    compute_instance: int
    used_bytes: int
    total_bytes: int


class SmiProcess(SmiRow, frozen=True, kw_only=True):
    """A process that uses a GPU."""

    index: int
    """The index of the GPU."""
    pid: int
    type: str
    """`C` is compute, `G` is graphics."""
    name: str
    used_bytes: int | None = None
    """None if the driver does not report it, as on Windows."""


Row = Union[SmiHeader, SmiGpu, SmiMigDevice, SmiProcess]


def read_rows(text: str) -> Iterator[Row]:
    """Return the rows of the tables in `text`, in order. A table may be cut off at either end, and contain other programs' lines."""
    card: SmiGpu | None = None
    for line in _LINE.finditer(text):
        if "|" not in line[0]:
            continue
        row = _row(text, *line.span())
        ends_cards = row is not None or any(title in line[0] for title in _OTHER_TABLES)
        if card is not None and ends_cards:
            yield card
            card = None
        if isinstance(row, SmiGpu):
            card = row
        elif row is not None:
            yield row
        elif (memory := _MEMORY.search(text, *line.span())) is not None:
            used, total = _memory(memory)
            if card is not None and card.total_bytes is None:
                card = replace(card, end=memory.end("unit"), compute_mode=memory["mode"], used_bytes=used, total_bytes=total)
            elif memory["cell_end"] and not _BAR1.match(line[0]):
                yield SmiGpu(start=memory.start("used"), end=memory.end("cell_end"), used_bytes=used, total_bytes=total)
        elif card is not None and (mig := _MIG_MODE.search(text, *line.span())) is not None:
            card = replace(card, mig=mig["mode"] == "Enabled")
    if card is not None:
        yield card


def has_whole_process_table(text: str) -> bool:
    """Return whether a process table is complete from its head to its last line, so that a GPU not in it has no processes listed."""
    return _WHOLE.search(text) is not None


def _row(text: str, start: int, end: int) -> Row | None:
    """Return the row that a line is or, for a GPU, the row it begins."""
    if cells := _HEADER.search(text, start, end):
        return SmiHeader(start=cells.start(), end=cells.end(), smi=cells["smi"], driver=cells["driver"], cuda=cells["cuda"])
    if cells := _CARD.search(text, start, end):
        return SmiGpu(
            start=cells.start(), end=cells.end(), index=int(cells["index"]), name=cells["name"], bus_id=cells["bus"], ecc=cells["ecc"]
        )
    if cells := _MIG_DEVICE.search(text, start, end):
        used, total = _memory(cells)
        return SmiMigDevice(
            start=cells.start("used"), end=cells.end(), index=int(cells["index"]), gpu_instance=int(cells["gi"]), compute_instance=int(cells["ci"]),
            used_bytes=used, total_bytes=total,
        )  # fmt: skip
    if cells := _PROCESS.search(text, start, end):
        return SmiProcess(
            start=cells.start(), end=cells.end(), index=int(cells["index"]), pid=int(cells["pid"]), type=cells["type"], name=cells["name"],
            used_bytes=int(cells["used"]) * MIB if cells["used"] else None,
        )  # fmt: skip
    return None


def _memory(cell: re.Match[str]) -> tuple[int, int]:
    return int(cell["used"]) * MIB, int(cell["total"]) * MIB
