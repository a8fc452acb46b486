"""The out-of-memory messages of the PyTorch allocators, on every device and in every generation.

PyTorch rewords this message every few releases, so each fact has its own small pattern: a missing clause costs one
field and not the whole message. Source: pytorch c10/cuda/CUDACachingAllocator.cpp and its ports (HIP, XPU, NPU, MPS, MUSA, MLU),
read from the wheels of 1.0 to 2.15. Patterns that few messages need are kept as strings, which `re` compiles when they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match
from oomdoctor.units import NOT_AVAILABLE, parse_size

_SIZE = r"(\d[\d.]{0,24}\s*(?:bytes|[KMGT]i?B))"
_DOTS = r"[^\S\n]*(?:\.{3}|…)?[^\S\n]*(?:\Z|\n[^\S\n]*(?:\n|\Z))"


def _or_cut(words: str) -> str:
    """Return the pattern of the words after a size, complete, or cut off where a copy of the message ends."""
    begun = "|".join(re.escape(words[:length]).replace(r"\ ", r"\s+") for length in range(len(words) - 1, 3, -1))
    whole = re.escape(words).replace(r"\ ", r"\s+")
    return rf"(?:{whole}\b|(?:{begun}){_DOTS})"


_START = re.compile(
    r"\b(?P<device>[A-Z]{2,6}|MPS backend)\s+out\s+of\s+memory\b"
    r"|(?P<tried>(?<!you\s)[Tt]ried\s+to\s+allocate\s+(?=\d|more\s+than))"
    r"|(?P<async>Allocation\s+on\s+device\b)"
    r"|(?P<warning>memory\s+(?:allocation|mapping)\s+failed\s+with\s+OOM\s+on\s+device)"
    r"|(?P<buffer>Invalid\s+buffer\s+size:\s+(?=\d))"
    r"|(?P<block>Current\s+platform\s+can\s+NOT\s+allocate\s+memory\s+block\b)"
    r"|(?P<address>\[ExpandableSegmentVA\]\s+Failed\s+to\s+reserve)"
    r"|(?P<headless>\b[A-Za-z]{2,12}\s+\d{1,4}\s+has\s+a\s+total\s+capaci?ty\s+of\s+(?=\d))"
)
_LONGEST = 6000
_HEAD = 2000
"""The first sentence is at most this far before the others; if it is missing, whoever copied the message lost it."""
_EXCEPTION = re.compile(
    r"([A-Za-z_][\w.:]{0,80}(?:Error|Exception|Warning))(?:['’]?\s+what\(\))?:\s*(?:Capture cuda graph failed:\s*)?\Z|Exception during processing !!!\s*\Z"
)
_CLONE = (
    r"Failed\s+to\s+clone\(\)\s+tensor(?:[^\n]{0,400}?\bon\s+rank\s+(\d{1,5}))?"
    r"|(?:\bon\s+rank\s+(\d{1,5}))?\.\s+This\s+may\s+mean\s+that\s+this\s+state_dict\s+entry"
)


@cache
def _compiled(generation: str) -> dict[str, re.Pattern[str]]:
    """Return the clauses of one generation; most logs contain messages of only one."""
    return {name: re.compile(form) for name, form in _CLAUSES[generation].items()}


_REQUESTED = rf"(?:[Tt]ried\s+to\s+allocate|Requested\s+size:)\s+{_SIZE}"
_OLD = (  # 1.0 to 2.0, and the ports that kept it: (GPU 0; T total capacity; A already allocated; ...)
    {
        "requested_bytes": _REQUESTED,
        "total_bytes": rf"{_SIZE}\s+total\b|\(GPU\s+\d{{1,4}};\s+(\d[\d.]{{0,24}}\s*[KMGT]i?B?)(?=\s*\Z|\n)",
        "allocated_bytes": rf"{_SIZE}\s+already\s+allocated",
        "active_bytes": rf"{_SIZE}\s+current\s+active",
        "free_bytes": rf"{_SIZE}\s+free\b",
        "limit_bytes": rf"{_SIZE}\s+allowed\s*;",
        "reserved_bytes": rf"{_SIZE}\s+reserved\s+in\s+total",
        "cached_bytes": rf"{_SIZE}\s+cached",
    }
)
_NEW = (  # from 2.1: GPU 0 has a total capacity of T of which F is free. ...
    {
        "requested_bytes": _REQUESTED,
        "total_bytes": rf"(?:total\s+capaci?ty\s+of|has\s+(?:a\s+)?total(?:\s+of)?)\s+{_SIZE}",
        "free_bytes": rf"of\s+which\s+{_SIZE}\s*is\s+free",
        "process_bytes": rf"this\s+process\s+has\s+{_SIZE}\s+{_or_cut('memory in use')}",
        "limit_bytes": rf"{_SIZE}\s+allowed\s*;",
        "allocated_bytes": rf"(?:allocated\s+memory|\.{{3}}|…)\s+{_SIZE}\s+{_or_cut('is allocated')}",
        "private_pools_bytes": rf"with\s+{_SIZE}\s+allocated\s+in\s+private\s+pools",
        "reserved_unallocated_bytes": rf"{_SIZE}\s+{_or_cut('is reserved by PyTorch but unallocated')}",
        "segment_reserve_bytes": rf"expandable-segment\s+reserve\s+of\s+{_SIZE}",
    }
)
_ASYNC = (  # cudaMallocAsync: one fact per line
    {
        "allocated_bytes": rf"Currently\s+allocated\s*:\s*{_SIZE}",
        "requested_bytes": rf"Requested\s*:\s*{_SIZE}",
        "total_bytes": rf"Device\s+limit\s*:\s*{_SIZE}",
        "free_bytes": rf"Free\s+\(according\s+to\s+CUDA\)\s*:\s*{_SIZE}",
        "limit_bytes": rf"user-supplied\s+memory\s+fraction\)(?:\s*|[^\n]{{0,60}}\n(?:[^\n]{{0,60}}\n)?[^\n]{{0,160}}?\s):\s*{_SIZE}",
    }
)
_MPS = {
    "allocated_bytes": rf"MPS\s+allocated:\s+{_SIZE}",
    "other_allocations_bytes": rf"other\s+allocations:\s+{_SIZE}",
    "limit_bytes": rf"max\s+allowed:\s+{_SIZE}",
    "requested_bytes": _REQUESTED,
}
_CLAUSES = {"old": _OLD, "new": _NEW, "async": _ASYNC, "mps": _MPS}
_TRIED = re.compile(_REQUESTED)
_DEVICE = re.compile(
    r"\b(?:GPU|NPU|XPU|MLU|MUSA|GCU)\s+(\d{1,4})(?:\s*;|\s+has\b)|on\s+device\s+(\d{1,4})\b|device\s+id:\s*(\d{1,4})"
    r"|\b[A-Za-z]{2,12}\s+(\d{1,4})\s+has\s+a\s+total\s+capaci?ty"
)
_OLD_DEVICE = re.compile(r"\(GPU\s+\d{1,4};")
_DEVICE_LOST = re.compile(
    r"Tried\s+to\s+allocate\s+\d[\d.]{0,24}\s*(?:bytes|[KMGT]iB)\.\s+GPU(?:\s+has\s+a\s+total|[^\S\n]{0,3}(?:\Z|[^\w\s]|\n))"
)
"""2.3.0 writes the device number as one character: NUL ends the message there, and any other is not a digit."""
_LOWERED = r"\bcuda out of memory\. tried to allocate [^\n]{0,1500}"
_CASES = {
    "cuda ": "CUDA ", "gpu ": "GPU ", "kib": "KiB", "mib": "MiB", "gib": "GiB", "of the allocated": "Of the allocated", "pytorch": "PyTorch",
    ". process": ". Process",
}  # fmt: skip
_OTHERS = re.compile(rf"\bProcess\s+(\d{{1,9}})\s+has\s+{_SIZE}")
_POOL = re.compile(r"on\s+(private|shared)\s+pool")
_EXACT = re.compile(r"trying\s+to\s+(?:allocate|map)\s+(\d{1,20})\s+bytes(?:\s+\(free:\s+(\d{1,20}),\s+total:\s+(\d{1,20})\))?")
_ADDRESS = r"reserve\s+(\d{1,20})\s+bytes[^\n]{0,400}?on\s+device\s+(\d{1,4})(?:[^\n]{0,400}?reserving\s+(\d{1,20})\s+bytes)?"
_HINT = re.compile(r"to\s+avoid\s+fragmentation\.?(?:\s+See\s+documentation[^\n]{0,300}(?:\n[^\n]{0,120}\))?)?")
_EXCEEDS = r"Allocation\s+on\s+device.{0,5}\s+would\s+exceed\s+allowed\s+memory"
_CUT_DEVICE = r"Allocation\s+on\s+device(?:\s+\d{1,3})?\s*(?:\n|$|[\"'`)\]])"
_CUT_HEAD = (
    r"\.?\s+T(?:r(?:i(?:ed?)?)?)?(?:\s+to?(?:\s+a[locate]{0,7}(?:\s+\d[\d.]{0,24}\s?[KMGT]?i?)?)?)?"
    r"(?:\s*\Z|[^\S\n]*(?:\n|(?:\.{2,3}|…)[^\S\n]*(?:\n|\Z)))"
)
"""A message that someone cut before its figure ends, with or without dots."""
_CUT_MPS = r"\s*\((?:MPS[\w :]{0,20})?[^\S\n]*(?:(?:\.{2,3}|…)[^\S\n]*)?(?:\n|\Z)"
_ALONE = r"\s*[.!]?\s*(?:\n|$|[\"'`)\]])"
_ABSURD = 1 << 50
"""A request of a pebibyte is an uninitialized or negative length; no model requests that much."""

_XPU_BLOCK = 4 << 30
"""The limit of Intel's stateful addressing (compute-runtime, ALLOCATIONS_GREATER_THAN_4GB.md): a larger block is refused as such."""

_PORTS = {"HIP": "torch-hip-oom", "XPU": "xpu-oom", "NPU": "npu-oom", "MLU": "mlu-oom", "MUSA": "musa-oom-new"}


def parse(text: str) -> Iterator[Match]:
    """Yield every allocator message in `text`."""
    if "cuda out of memory. tried" in text:
        text = re.sub(_LOWERED, _recased, text)
    for start, end, lead in _messages(text):
        message = _read(text, start, end, lead)
        if message is not None:
            yield message


def _recased(lowered: re.Match[str]) -> str:
    """Return a message that was pasted in lowercase, in PyTorch's own capitalization and with its length unchanged."""
    message = lowered[0]
    for lower, original in _CASES.items():
        message = message.replace(lower, original)
    return message


def _messages(text: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Yield (start, end, what it starts with) of each; a head and the `Tried to allocate` after it are one message."""
    starts: list[re.Match[str]] = []
    for start in _START.finditer(text):
        if start["headless"] and starts and start.start() - starts[-1].start() <= _HEAD:
            continue
        if start["tried"] and starts and not starts[-1]["tried"] and start.start() - starts[-1].start() <= 400:
            if not _TRIED.search(text, starts[-1].start(), start.start()):
                continue
        starts.append(start)
    for lead, after in zip(starts, [*starts[1:], None]):
        limit = min(len(text), lead.start() + _LONGEST)
        yield lead.start(), min(limit, after.start()) if after else limit, lead


def _read(text: str, start: int, end: int, lead: re.Match[str]) -> Match | None:
    body = text[start:end]
    head = _EXCEPTION.search(text, max(0, start - 140), start)
    if lead["warning"]:
        return _warning(body, start)
    if lead["address"]:
        return _address_space(body, start)
    fields, last = _sizes(body, lead)
    last = max(last, lead.end() - start)
    device = _DEVICE.search(body)
    if device:
        fields["gpu_index"] = int(next(group for group in device.groups() if group is not None))
    if head and head[1]:
        fields["exception"] = head[1]
    if lead["buffer"]:
        size = parse_size(re.split(r"[^\d.\sKMGTiBbytes]", body[lead.end() - start :], maxsplit=1)[0].strip())
        return Match("mps-invalid-buffer-size", start, lead.end(), {"requested_bytes": size} if size else {}) if size else None
    name = _name(body, lead, fields, head is not None)
    if name is None:
        return None
    _processes(body, fields)
    _asides(body, fields)
    clone = _cloning(text, start)
    if clone and "\n\n" not in text[clone.start() : start]:
        name = "fsdp-clone-oom"
        if clone[1] or clone[2]:
            fields["rank"] = int(clone[1] or clone[2])
    hint = _HINT.search(body, last, last + 400)
    last = hint.end() if hint else last
    return Match(name, head.start() if head else start, start + last, fields)


def _cloning(text: str, start: int) -> re.Match[str] | None:
    """Return FSDP's own message around this one, if it was copying a state dict."""
    near = max(0, start - 1500)
    if text.find("clone()", near, start) < 0 and text.find("state_dict", near, start) < 0:
        return None
    return re.compile(_CLONE).search(text, near, start)


def _sizes(body: str, lead: re.Match[str]) -> tuple[dict[str, Value], int]:
    """Return the figures of a message, and where the last of them ends."""
    if lead["async"]:
        generation = "async"
    elif lead["device"] == "MPS backend":
        generation = "mps"
    else:
        generation = "old" if "capacity;" in body or "already allocated" in body or _OLD_DEVICE.search(body) else "new"
    fields: dict[str, Value] = {}
    last = 0
    for name, form in _compiled(generation).items():
        clause = form.search(body)
        size = parse_size(next(group for group in clause.groups() if group)) if clause else None
        if clause and size is not None:
            last = max(last, clause.end())
            if size != NOT_AVAILABLE:
                fields[name] = size
    return fields, last


def _name(body: str, lead: re.Match[str], fields: dict[str, Value], headed: bool) -> str | None:
    """Return the generation that prints such a message; None if it is only a mention."""
    if lead["async"]:
        if re.match(_EXCEEDS, body):
            return "torch-cuda-oom-mallocasync"
        return "torch-cuda-oom-mallocasync-truncated" if headed and re.match(_CUT_DEVICE, body) else None
    if lead["headless"]:
        return "torch-oom-headless" if "free_bytes" in fields else None
    device = lead["device"] or ""
    requested = fields.get("requested_bytes")
    if re.search(r"more\s+than\s+1EB\s+memory", body[:120]):
        return "torch-cuda-oom-1eb"
    if "preemptively" in body[:160]:
        return "npu-oom-preemptive" if device == "NPU" else "torch-cuda-oom-preemptive-fraction"
    if isinstance(requested, int) and requested >= _ABSURD and isinstance(fields.get("total_bytes"), int):
        return "torch-cuda-oom-absurd-size"
    if lead["block"]:
        return "ipex-block-too-large" if requested is not None else None
    if device == "MPS backend":
        after = lead.end() - lead.start()
        return _mps(body, fields, headed and (re.match(_ALONE, body[after:]) or re.match(_CUT_MPS, body[after:])) is not None)
    if device == "NPU" and re.match(r"\s*NPU\s+out\s+of\s+memory\.\s+device\s+id:\s*\d", body):
        return "npu-oom-device-id"
    if "NPUWorkspaceAllocator" in body[:120]:
        return "npu-oom-workspace"
    if requested is None:
        if device == "CUDA" and re.match(r"\s+occurred\s+when\s+warming\s+up", body[lead.end() - lead.start() :]):
            return None  # vLLM's own sentence has its own signature
        after = lead.end() - lead.start()
        bare = re.match(_ALONE, body[after:]) or re.match(_CUT_HEAD, body[after:])
        return "torch-cuda-oom-head" if device and bare and headed else None
    if device in _PORTS:
        held = (fields.get("allocated_bytes"), fields.get("reserved_unallocated_bytes") or 0)
        unused = held == (0, 0) and _covers(fields.get("free_bytes"), requested)
        if device == "XPU" and unused and isinstance(requested, int) and requested < _XPU_BLOCK:
            return "xpu-oom-host-usm"
        if device == "MUSA" and "total capacity;" in body:
            return "musa-oom-old"
        return _PORTS[device]
    if device not in ("", "CUDA"):
        return "torch-other-device-oom"
    return _cuda(body, fields)


def _mps(body: str, fields: Mapping[str, Value], bare: bool) -> str | None:
    """Return which of them it is; one that ends after its first sentence, as titles do, still has its figures."""
    requested = fields.get("requested_bytes")
    if requested is None and "limit_bytes" not in fields:
        return "mps-oom-head" if bare else None
    if requested == 256:
        return "mps-oom-256-bytes"
    return "mps-oom-gib" if "GiB" in body[:160] else "mps-oom-gb"


def _cuda(body: str, fields: dict[str, Value]) -> str:
    """Return the CUDA message, identified by what only one generation prints; the parts of the others are optional in all."""
    if "cached_bytes" in fields:
        return "torch-cuda-oom-1x-cached"
    if "reserved_bytes" in fields or "total capacity;" in body or _OLD_DEVICE.search(body):
        if "limit_bytes" in fields:
            return "torch-cuda-oom-1x-allowed"
        if fields.get("exception") == "torch.cuda.OutOfMemoryError":
            return "torch-cuda-oom-113"
        return "torch-cuda-oom-110-hint" if "max_split_size_mb" in body else "torch-cuda-oom-1x-reserved"
    if "capacty" in body:
        return "torch-cuda-oom-21-capacty"
    if "segment_reserve_bytes" in fields:
        return "torch-cuda-oom-215-reserve-too-small"
    if "expandable_segments is enabled" in body:
        return "torch-cuda-oom-215-expandable-hint"
    if "private_pools_bytes" in fields:
        return "torch-cuda-oom-private-pools"
    if "limit_bytes" in fields:
        return "torch-cuda-oom-allowed-2x"
    if _DEVICE_LOST.search(body):
        return "torch-cuda-oom-230-cut"
    if "total_bytes" not in fields and "gpu_index" not in fields:
        return "torch-cuda-oom-head"
    others = _others(body)
    if any(parse_size(size) == NOT_AVAILABLE for _, size in others):
        return "torch-cuda-oom-process-na"
    if len(others) > 1:
        return "torch-cuda-oom-many-processes"
    if "PYTORCH_ALLOC_CONF" in body:
        return "torch-cuda-oom-210-hint"
    if "optimizing-memory-usage-with-pytorch-cuda-alloc-conf" in body:
        return "torch-cuda-oom-211-hint"
    if not others and "process_bytes" not in fields and "allocated_bytes" in fields:
        return "torch-cuda-oom-no-nvml"
    return "torch-cuda-oom-24-rename" if fields.get("exception") == "torch.OutOfMemoryError" else "torch-cuda-oom-22"


def _others(body: str) -> list[tuple[str, str]]:
    """Return the (pid, size) of each `Process N has`."""
    return _OTHERS.findall(body) if "Process" in body else []


def _processes(body: str, fields: dict[str, Value]) -> None:
    """Add the other processes using memory on the GPU.

    In a container NVML reports the host's PIDs, and this process is one of those listed: the one whose
    use is just above what its allocator holds.
    """
    listed = [{"pid": int(pid), "used_bytes": _known(parse_size(size))} for pid, size in _others(body)[:256]]
    allocated, unused = fields.get("allocated_bytes"), fields.get("reserved_unallocated_bytes", 0)
    if listed and "process_bytes" not in fields and isinstance(allocated, int) and isinstance(unused, int):
        this_process = min(
            (process for process in listed if process["used_bytes"] is not None and process["used_bytes"] >= (allocated + unused) * 0.995),
            key=lambda process: process["used_bytes"] or 0,
            default=None,
        )
        if this_process is not None:
            listed.remove(this_process)
            fields["process_bytes"] = this_process["used_bytes"] or 0
            fields["pid"] = this_process["pid"] or 0
            fields["process_found_by"] = "its use lies just above what PyTorch holds"
    if listed:
        fields["other_processes"] = tuple(listed)


def _known(size: int | None) -> int | None:
    return None if size is None or size >= NOT_AVAILABLE else size


def _asides(body: str, fields: dict[str, Value]) -> None:
    pool = _POOL.search(body)
    if pool:
        fields["pool"] = pool[1]
    if "expandable_segments is enabled" in body:
        fields["expandable_segments"] = "true"
    if re.search(r"(?<!CUDA_)(?<!HIP_)PYTORCH_ALLOC_CONF", body):
        fields["hint_env"] = "PYTORCH_ALLOC_CONF"


def _covers(free: Value | None, requested: Value | None) -> bool:
    return isinstance(free, int) and isinstance(requested, int) and free >= requested


def _warning(body: str, start: int) -> Match | None:
    exact = _EXACT.search(body)
    if exact is None:
        return None
    fields: dict[str, Value] = {"requested_bytes": int(exact[1])}
    if exact[2]:
        fields["free_bytes"], fields["total_bytes"] = int(exact[2]), int(exact[3])
    device = _DEVICE.search(body)
    if device and device[2]:
        fields["gpu_index"] = int(device[2])
    name = "torch-expandable-map-oom" if "mapping" in body[:20] else "torch-alloc-oom-warning"
    return Match(name, start, start + exact.end(), fields)


def _address_space(body: str, start: int) -> Match | None:
    refusal = re.search(_ADDRESS, body)
    if refusal is None:
        return None
    fields: dict[str, Value] = {"requested_bytes": int(refusal[1]), "gpu_index": int(refusal[2])}
    if refusal[3]:
        fields["held_bytes"] = int(refusal[3])
    return Match("torch-expandable-va-exhausted", start, start + refusal.end(), fields)
