"""Tables of nvidia-smi: memory of each card and of each process. Columns moved over the years; the values did not change form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match
from oomdoctor.units import MIB

_CARD = re.compile(
    r"\|\s{1,6}(?P<gpu>\d{1,3})\s{1,4}(?P<name>\S[^|\n]{2,60}?)\s{1,40}(?:On|Off|TCC|WDDM|MCDM|N/A)\s{0,6}\|\s{1,6}(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)[^\n]{0,80}\n"
    r"[^\n]{0,60}?(?P<used>\d{1,7})MiB\s{0,4}/\s{0,4}(?P<total>\d{1,7})MiB"
)
_MEMORY = re.compile(r"(?P<used>\d{1,7})MiB\s{0,4}/\s{0,4}(?P<total>\d{1,7})MiB\s{0,4}\|")
_PROCESS = re.compile(
    r"\|\s{1,6}(?P<gpu>\d{1,3})\s{1,6}(?:(?:N/A|\d{1,3})\s{1,6}(?:N/A|\d{1,3})\s{1,12})?(?P<pid>\d{1,9})\s{1,12}(?P<type>C\+G|M\+C|C|G)\s{1,8}(?P<name>\S[^|\n]{0,80}?)\s{1,60}(?P<used>\d{1,7})MiB\s{0,3}\|"
)
_WHOLE = re.compile(r"\| Processes:[^\n]{0,120}\n(?:\|[^\n]{0,120}\n){1,200}\+-{20,120}\+")
"""The table of processes, from its head to its last line: only then a card without a process is known to have none listed."""
_HEADER = re.compile(
    r"Driver Version:\s{1,4}(?P<driver>\d{3}\.\d{2,3}(?:\.\d{2,3})?)(?:\s{1,20}CUDA Version:\s{1,4}(?P<cuda>\d{1,2}\.\d))?"
)


def parse(text: str) -> Iterator[Match]:
    """The rows of the tables in `text`."""
    header = _HEADER.search(text)
    if header:
        facts: dict[str, Value] = {"driver_version": header["driver"]}
        if header["cuda"]:
            facts["driver_cuda_version"] = header["cuda"]
        yield Match("nvidia-smi-header", header.start(), header.end(), facts)
    covered: set[int] = set()
    table: dict[str, Value] = {"table": "whole"} if _WHOLE.search(text) else {}
    for card in _CARD.finditer(text):
        covered.add(card.start("used"))
        fields: dict[str, Value] = {
            "gpu_index": int(card["gpu"]),
            "name": card["name"].strip(),
            "bus_id": card["bus"],
            **_memory(card),
            **table,
        }
        yield Match("nvidia-smi-gpu-row", card.start(), card.end(), fields)
    for memory in _MEMORY.finditer(text):
        if memory.start("used") not in covered:
            yield Match("nvidia-smi-gpu-row", memory.start(), memory.end(), _memory(memory))
    for process in _PROCESS.finditer(text):
        fields = {
            "gpu_index": int(process["gpu"]),
            "pid": int(process["pid"]),
            "type": process["type"],
            "name": process["name"],
            "used_bytes": int(process["used"]) * MIB,
        }
        yield Match("nvidia-smi-process-row", process.start(), process.end(), fields)


def _memory(row: re.Match[str]) -> dict[str, Value]:
    return {"used_bytes": int(row["used"]) * MIB, "total_bytes": int(row["total"]) * MIB}
