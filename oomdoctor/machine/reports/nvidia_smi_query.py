"""`nvidia-smi -q`, a tree of keys by indentation, and `nvidia-smi --query-gpu ... --format=csv`, a table of what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.environment import GpuProcess
from oomdoctor.machine.reports.merge_facts import MOST_GPUS, Fact
from oomdoctor.machine.reports.values import known_value, program_name
from oomdoctor.parse.nvidia_smi import CUDA_KEYS, DRIVER_KEYS
from oomdoctor.units import parse_size

BEGINS = re.compile(r"^\s{0,8}={4,20}\s?NVSMI LOG\s?={4,20}\s*$")
CONTINUES = re.compile(r"^\s*$|^\s{0,40}\S[^:]{0,60}\s{0,60}:(?:\s|$)|^\s{0,40}GPU [0-9A-Fa-f]{4,8}:|^\s{4,40}[A-Z][\w ()/-]{1,60}$")
CSV = re.compile(
    r"^\s{0,8}(?=[^\n]{0,200}(?:memory\.|driver_version|name|compute_cap))"
    r"[a-z_.]{2,60}(?: \[\w{1,6}\])?(?:, [a-z_.]{2,60}(?: \[\w{1,6}\])?){1,40}\s*$"
)
CSV_ROW = re.compile(r"^[^,\n]{1,120}(?:, [^,\n]{0,120}){1,40}$")

_GPU = re.compile(r"^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*$")
_DRIVER = re.compile(r"\d{3}\.\d{1,3}(?:\.\d{1,3})?\Z")
_CUDA = re.compile(r"\d{1,2}\.\d\Z")
_DEEPEST = 8

_SIZES = {
    "FB Memory Usage/Total": "total_bytes",
    "FB Memory Usage/Used": "used_bytes",
    "FB Memory Usage/Free": "free_bytes",
    "FB Memory Usage/Reserved": "reserved_bytes",
}
_SWITCHES = {"MIG Mode/Current": "mig", "ECC Mode/Current": "ecc"}
_SWITCH_VALUES = {"Enabled": True, "Disabled": False, "Yes": True, "No": False}
_PENDING = ("Retired Pages/Pending Page Blacklist", "Retired Pages/Pending", "Remapped Rows/Pending")
_RETIRED = (
    "Retired Pages/Single Bit ECC",
    "Retired Pages/Double Bit ECC",
    "Remapped Rows/Correctable Error",
    "Remapped Rows/Uncorrectable Error",
)
_UNCORRECTED = re.compile(r"ECC Errors/Volatile/(?:(?:SRAM|DRAM) Uncorrectable.{0,20}|Double Bit/Total)\Z")


def read_query(lines: Sequence[str]) -> Iterator[Fact]:
    """Read what one printed log says."""
    yield ("gpus_known",), True
    index = -1
    card: list[tuple[str, str]] = []
    for line in lines:
        if _GPU.match(line.strip()):
            yield from _card(str(index), card)
            index, card = index + 1, []
            if index >= MOST_GPUS:
                return
        elif index < 0:
            yield from _head(line)
        else:
            card.append((line, line.strip()))
    yield from _card(str(index), card)


def read_csv(lines: Sequence[str]) -> Iterator[Fact]:
    """Read the rows of a csv query, one card each."""
    columns = [column.partition(" [")[0].strip() for column in lines[0].split(",")]
    units = [column.partition("[")[2].rstrip("] ") for column in lines[0].split(",")]
    yield ("gpus_known",), True
    for number, line in enumerate(lines[1 : MOST_GPUS + 1]):
        row = {name: (value.strip(), unit) for name, unit, value in zip(columns, units, line.split(","))}
        index = row.get("index", ("", ""))[0]
        at = str(int(index)) if index.isdecimal() and len(index) <= 3 else str(number)
        for name, (value, unit) in row.items():
            yield from _cell(at, name, value, unit)


_COLUMNS = {
    "memory.total": "total_bytes",
    "memory.used": "used_bytes",
    "memory.free": "free_bytes",
    "memory.reserved": "reserved_bytes",
}


def _cell(index: str, name: str, value: str, unit: str) -> Iterator[Fact]:
    if known_value(value) is None:
        return
    if name in _COLUMNS and (size := _size(value, unit)) is not None:
        yield ("gpus", index, _COLUMNS[name]), size
    elif name in ("name", "gpu_name"):
        yield ("gpus", index, "name"), value[:80]
        yield ("gpus", index, "vendor"), "nvidia"
    elif name == "driver_version" and _DRIVER.match(value):
        yield ("driver", "version"), value
    elif name == "compute_cap" and _CUDA.match(value):
        yield ("gpus", index, "compute_capability"), value


def _head(line: str) -> Iterator[Fact]:
    key, _, value = (part.strip() for part in line.partition(":"))
    if key in DRIVER_KEYS and _DRIVER.match(value):
        yield ("driver", "version"), value
    elif key in CUDA_KEYS and _CUDA.match(value):
        yield ("driver", "cuda"), value


def _card(index: str, lines: Sequence[tuple[str, str]]) -> Iterator[Fact]:
    if index == "-1":
        return
    pairs = list(_walk(lines))
    leaves = {path: value for path, value in pairs if known_value(value) is not None}
    yield ("gpus", index, "vendor"), "nvidia"
    for path, value in leaves.items():
        if path in _SIZES and (size := _size(value)) is not None:
            yield ("gpus", index, _SIZES[path]), size
        elif path in _SWITCHES and value in _SWITCH_VALUES:
            yield ("gpus", index, _SWITCHES[path]), _SWITCH_VALUES[value]
    if (name := leaves.get("Product Name")) is not None:
        yield ("gpus", index, "name"), name[:80]
    if (architecture := leaves.get("Product Architecture")) is not None:
        yield ("gpus", index, "architecture"), architecture[:40]
    if (mode := leaves.get("Compute Mode")) is not None:
        yield ("gpus", index, "exclusive"), mode.startswith("Exclusive")
    yield from _health(index, leaves)
    processes = list(_processes(pairs))
    if processes:
        yield ("gpus", index, "processes"), processes[:64]
        yield ("gpus", index, "processes_known"), True


def _health(index: str, leaves: Mapping[str, str]) -> Iterator[Fact]:
    uncorrected = [int(value) for path, value in leaves.items() if _UNCORRECTED.match(path) and value.isdecimal() and len(value) < 12]
    if uncorrected:
        yield ("gpus", index, "ecc_uncorrected"), sum(uncorrected)
    retired = [int(leaves[path]) for path in _RETIRED if leaves.get(path, "").isdecimal() and len(leaves[path]) < 12]
    if retired:
        yield ("gpus", index, "retired_pages"), sum(retired)
    pending = [_SWITCH_VALUES[leaves[path]] for path in _PENDING if leaves.get(path) in _SWITCH_VALUES]
    if pending:
        yield ("gpus", index, "repair_pending"), any(pending)


def _walk(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Read the leaves of the tree below one card, `FB Memory Usage/Total` and its value, in their order."""
    above: list[tuple[int, str]] = []
    for line, text in lines:
        if not text:
            continue
        depth = len(line) - len(line.lstrip(" "))
        while above and above[-1][0] >= depth:
            above.pop()
        key, colon, value = text.partition(":")
        path = "/".join([*(name for _, name in above), key.strip()])
        if colon:
            yield path, value.strip()
        if (not value.strip() or key.strip() == "Process ID") and len(above) < _DEEPEST:
            above.append((depth, key.strip()))


def _processes(pairs: Sequence[tuple[str, str]]) -> Iterator[GpuProcess]:
    process: GpuProcess | None = None
    for path, value in pairs:
        if path.endswith("Processes/Process ID") or path == "Process ID":
            if process is not None:
                yield process
            process = GpuProcess(pid=int(value)) if value.isdecimal() and len(value) < 10 else None
        elif process is not None and path.endswith("Process ID/Name"):
            process = replace(process, name=program_name(value))
        elif process is not None and path.endswith("Process ID/Used GPU Memory") and (size := _size(value)) is not None:
            process = replace(process, used_bytes=size)
    if process is not None:
        yield process


def _size(value: str, unit: str = "") -> int | None:
    size = parse_size(value, unit)
    return size if size is not None and 0 <= size < 1 << 60 else None
