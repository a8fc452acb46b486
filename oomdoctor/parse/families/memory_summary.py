"""`torch.cuda.memory_summary()`: the current and peak memory of one GPU's allocator. Source: pytorch torch/cuda/memory.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match
from oomdoctor.units import parse_size

_HEAD = re.compile(r"PyTorch CUDA memory summary, device ID (\d{1,4})")
_COUNTS = re.compile(r"CUDA OOMs:\s{0,12}(\d{1,9})\s{0,20}\|\s{0,20}cudaMalloc retries:\s{0,12}(\d{1,9})")
_ROW = re.compile(
    r"\|\s{0,4}(Allocated memory|Active memory|Requested memory|GPU reserved memory|Non-releasable memory)\s{0,12}"
    r"\|\s{0,12}(\d{1,12}\s{1,3}[KMGT]?i?B)\s{0,4}\|\s{0,12}(\d{1,12}\s{1,3}[KMGT]?i?B)"
)
_NAMES = {
    "Allocated memory": "allocated",
    "Active memory": "active",
    "Requested memory": "requested_by_tensors",
    "GPU reserved memory": "reserved",
    "Non-releasable memory": "non_releasable",
}
_LONGEST = 5000


def parse(text: str) -> Iterator[Match]:
    """Yield every summary table in `text`."""
    heads = list(_HEAD.finditer(text))
    for head, after in zip(heads, [*heads[1:], None]):
        end = min(len(text), head.start() + _LONGEST, after.start() if after else len(text))
        body = text[head.start() : end]
        fields: dict[str, Value] = {"gpu_index": int(head[1])}
        counts = _COUNTS.search(body)
        if counts:
            fields["num_ooms"], fields["num_alloc_retries"] = int(counts[1]), int(counts[2])
        last = head.end()
        for row in _ROW.finditer(body):
            for prefix, size in (("", parse_size(row[2])), ("peak_", parse_size(row[3]))):
                if size is not None:
                    fields[f"{prefix}{_NAMES[row[1]]}_bytes"] = size
            last = head.start() + row.end()
        yield Match("torch-memory-summary", head.start(), last, fields)
