"""Allocator messages of PyTorch and Paddle that somebody, or a browser, has put into Chinese.

No program prints them, so there is no one wording: a head says whose memory ran out, and each figure is found by the words
around it. Without the size that was asked for it is only talk about such a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match
from oomdoctor.units import parse_size

_SIZE = r"(\d[\d.,]{0,24}\s?(?:[KMGT]i?B|[Bb]ytes|B|字节))"
_MEMORY = r"(?:显卡|设备|GPU)?(?:内存|显存)"
_SHORT = r"(?:不足|溢出|耗尽|已满)"
_TORCH = re.compile(
    rf"(?:(?P<exception>[A-Za-z_][\w.]{{0,80}}Error)\s?[：:]\s?)?\b(?:CUDA|HIP|NPU|XPU)\s?(?:的|出现)?{_MEMORY}{_SHORT}(?:错误)?[。.，,：:；;！!]"
)
_PADDLE = re.compile(rf"(?:GPU|XPU|NPU|MLU)\s?\d{{1,3}}\s?上?的?(?:出现|发生)?(?:了)?{_MEMORY}{_SHORT}(?:的)?(?:错误)?[。.，,：:；;！!]")
_LONGEST = 800
_REQUESTED = re.compile(rf"(?:尝试|试图|企图|想要|无法|不能)[^。；;\n]{{0,20}}?分配\s?(?:了)?\s?{_SIZE}")
_CLAUSES: dict[str, tuple[str, ...]] = {
    "total_bytes": (rf"总(?:{_MEMORY})?(?:容量|大小)?\s?(?:为|是|有|[：:])?\s?{_SIZE}", rf"{_SIZE}\s?的?总(?:{_MEMORY})?容量"),
    "free_bytes": (
        rf"(?:空闲|可用|剩余)(?:的)?(?:{_MEMORY})?\s?(?:仅|只)?(?:为|是|有|剩)?(?:[：:])?\s?{_SIZE}",
        rf"{_SIZE}\s?(?:是|为|处于)?(?:空闲|可用|未使用)",
    ),
    "process_bytes": (rf"(?:此|该|本|当前)进程[^。；;\n\d]{{0,12}}{_SIZE}",),
    "allocated_bytes": (
        rf"{_SIZE}\s?(?:是|已)?(?:由|被)\s?PyTorch\s?分配",
        rf"已(?:经)?分配\s?(?:了)?\s?{_SIZE}",
        rf"{_SIZE}\s?已(?:经)?分配",
    ),
    "reserved_unallocated_bytes": (rf"{_SIZE}\s?(?:是|已)?(?:由|被)\s?PyTorch\s?(?:保留|预留)但(?:尚)?未分配",),
    "reserved_bytes": (rf"总共(?:保留|预留)(?:了)?\s?{_SIZE}", rf"{_SIZE}\s?(?:由|被)\s?PyTorch\s?总共(?:保留|预留)"),
}
_DEVICE = re.compile(r"(?:GPU|XPU|NPU|MLU)\s?(\d{1,3})")
_OTHER = re.compile(rf"进程\s?(\d{{1,9}})\s?[^。；;\n\d]{{0,12}}{_SIZE}")


def parse(text: str) -> Iterator[Match]:
    """Yield every such message in `text`."""
    for name, head in (("torch-oom-translated", _TORCH), ("paddle-oom-translated", _PADDLE)):
        for start in head.finditer(text):
            match = _read(name, text, start)
            if match is not None:
                yield match


def _read(name: str, text: str, head: re.Match[str]) -> Match | None:
    body = text[head.start() : head.start() + _LONGEST].split("\n\n", 1)[0]
    requested = _REQUESTED.search(body)
    if requested is None:
        return None
    fields: dict[str, Value] = {"requested_bytes": _size(requested[1])}
    last = requested.end()
    for field, forms in _CLAUSES.items():
        clause = next((hit for form in forms if (hit := re.search(form, body))), None)
        if clause is not None:
            fields[field] = _size(clause[1])
            last = max(last, clause.end())
    device = _DEVICE.search(body)
    if device is not None:
        fields["gpu_index"] = int(device[1])
    if head.groupdict().get("exception"):
        fields["exception"] = head["exception"]
    others = [{"pid": int(pid), "used_bytes": _size(size)} for pid, size in _OTHER.findall(body)[:256]]
    if others:
        fields["other_processes"] = tuple(others)
    return Match(name, head.start(), head.start() + last, fields)


def _size(printed: str) -> int:
    """Return the bytes of a size; the patterns let nothing else through."""
    return parse_size(printed.replace("字节", "bytes")) or 0
