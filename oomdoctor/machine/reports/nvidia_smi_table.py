"""The tables of `nvidia-smi`, of drivers 384 to 610: cards, MIG devices and processes.

Columns moved over the years; the cells kept their form. From 610 on the head says KMD Version and CUDA UMD Version
(docs.nvidia.com/deploy/nvidia-smi, change log).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from oomdoctor.machine.reports.merge_facts import MOST_GPUS, Fact
from oomdoctor.machine.reports.values import program, vendor
from oomdoctor.units import MIB

BEGINS = re.compile(r"^\s{0,40}\|?\s{0,4}NVIDIA-SMI \d{3}")
CONTINUES = re.compile(r"^\s{0,40}[|+]|^\s*$")

_DRIVER = re.compile(r"(?:Driver|KMD) Version:\s{1,4}(?P<driver>\d{3}\.\d{1,3}(?:\.\d{1,3})?)")
_CUDA = re.compile(r"CUDA (?:UMD )?Version:\s{1,4}(?P<cuda>\d{1,2}\.\d)")
_CARD = re.compile(
    r"^\|\s{1,6}(?P<index>\d{1,3})\s{1,6}(?P<name>\S.{0,60}?)\s{1,40}(?:On|Off|TCC|WDDM|MCDM|N/A)\s{0,6}\|"
    r"\s{0,6}[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s{1,12}\S{1,4}\s{0,4}\|\s{0,24}(?P<ecc>\d{1,9}|N/A|Off|On)\s{0,6}\|"
)
_MEMORY = re.compile(
    r"\|\s{0,24}(?P<used>\d{1,8})MiB\s{0,4}/\s{0,4}(?P<total>\d{1,8})MiB\s{0,4}\|"
    r"(?:\s{0,12}\S{1,6}\s{1,12}(?P<mode>Default|E\. Process|E\. Thread|Prohibited))?"
)
_MIG_MODE = re.compile(r"\|\s{1,60}(?P<mode>Enabled\*?|Disabled\*?)\s{0,4}\|\s*$")
_SLICE = re.compile(
    r"^\|\s{1,6}(?P<index>\d{1,3})\s{1,8}(?P<gi>\d{1,3})\s{1,8}(?P<ci>\d{1,3})\s{1,8}(?P<dev>\d{1,3})\s{1,8}\|\s{1,24}(?P<used>\d{1,8})MiB\s{0,4}/\s{0,4}(?P<total>\d{1,8})MiB"
)
_PROCESS = re.compile(
    r"^\|\s{1,8}(?P<index>\d{1,3})\s{1,8}(?:(?:N/A|\d{1,3})\s{1,8}(?:N/A|\d{1,3})\s{1,20})?(?P<pid>\d{1,9})\s{1,12}(?:C\+G|M\+C|C|G)\s{1,8}"
    r"(?P<name>\S.{0,120}?)\s{1,80}(?:(?P<used>\d{1,8})MiB|N/A)\s{0,12}\|"
)
_SLICES_HEAD = "MIG devices:"
_PROCESSES_HEAD = "Processes:"


def facts(lines: Sequence[str]) -> Iterator[Fact]:
    """What one printed table says."""
    text = [line.strip() for line in lines]
    head = " ".join(text[:4])
    if driver := _DRIVER.search(head):
        yield ("driver", "version"), driver["driver"]
        yield ("gpus_known",), True
    if cuda := _CUDA.search(head):
        yield ("driver", "cuda"), cuda["cuda"]
    yield from _cards(text)
    yield from _slices(text)
    yield from _processes(text)


def _cards(lines: Sequence[str]) -> Iterator[Fact]:
    """Each card has two or three lines: name and ECC, memory and compute mode, MIG."""
    index: str | None = None
    for line in lines:
        if _SLICES_HEAD in line or _PROCESSES_HEAD in line:
            return
        if card := _CARD.match(line):
            index = str(int(card["index"]))
            if int(index) >= MOST_GPUS:
                return
            yield from _first_line(index, card["name"], card["ecc"])
        elif index is not None and (memory := _MEMORY.search(line)):
            yield ("gpus", index, "used_bytes"), int(memory["used"]) * MIB
            yield ("gpus", index, "total_bytes"), int(memory["total"]) * MIB
            if memory["mode"]:
                yield ("gpus", index, "exclusive"), memory["mode"].startswith("E.")
        elif index is not None and (mode := _MIG_MODE.search(line)):
            yield ("gpus", index, "mig"), mode["mode"].startswith("Enabled")


def _first_line(index: str, name: str, ecc: str) -> Iterator[Fact]:
    # A name that ends in dots is cut: `NVIDIA GeForce ...` could be any of forty cards.
    if not name.endswith("..."):
        yield ("gpus", index, "name"), name
    yield ("gpus", index, "vendor"), vendor(name) or "nvidia"
    if ecc != "N/A":
        yield ("gpus", index, "ecc"), ecc != "Off"
    if ecc.isdecimal():
        yield ("gpus", index, "ecc_uncorrected"), int(ecc)


def _slices(lines: Sequence[str]) -> Iterator[Fact]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in filter(None, map(_SLICE.match, lines)):
        own = {"name": f"GI {one['gi']} CI {one['ci']}", "used_bytes": int(one["used"]) * MIB, "total_bytes": int(one["total"]) * MIB}
        found.setdefault(str(int(one["index"])), []).append(own)
    for index, slices in found.items():
        yield ("gpus", index, "slices"), slices[:8]


def _processes(lines: Sequence[str]) -> Iterator[Fact]:
    """The processes of each card. An empty table says nothing: inside a container nobody else's processes are listed."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in filter(None, map(_PROCESS.match, lines)):
        own: dict[str, Any] = {"pid": int(one["pid"]), "name": program(one["name"])}
        if one["used"]:
            own["used_bytes"] = int(one["used"]) * MIB
        found.setdefault(str(int(one["index"])), []).append(own)
    for index, processes in list(found.items())[:MOST_GPUS]:
        yield ("gpus", index, "processes"), processes[:64]
        yield ("gpus", index, "processes_known"), True
