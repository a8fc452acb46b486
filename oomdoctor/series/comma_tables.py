"""Tables with commas: `nvidia-smi --query-gpu`, `--query-compute-apps`, `dmon --format csv`, exports of trackers.

Columns are known by their names (`nvidia-smi --help-query-gpu`, `--help-query-compute-apps`); without a head by what stands in them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from oomdoctor.series.builder import SeriesBuilder
from oomdoctor.series.names import Metric, read_name
from oomdoctor.series.values import read_bytes, read_number, read_time
from oomdoctor.units import GIB, KIB, MIB

NO_HEAD = "it has no header: the column that varies was taken as memory in use"
NO_MEMORY = "none of its columns is memory in use"

_LONGEST_LINE = 64 << 10
_MOST_CELLS = 2000
_ROLES = {
    "timestamp": "time", "time": "time", "date": "date", "_timestamp": "time", "wall time": "time", "_runtime": "time",
    "relative time (process)": "time", "relative time (wall)": "time",
    "index": "card", "gpu": "card", "gpu_index": "card", "idx": "card", "gpu index": "card",
    "uuid": "address", "gpu_uuid": "address", "pci.bus_id": "address", "gpu_bus_id": "address", "pci.bus": "address",
    "memory.used": "used", "fb": "used", "used_gpu_memory": "used", "used_memory": "used", "memory.total": "total", "memory.free": "free",
    "pid": "process", "process_name": "name", "command": "name", "key": "metric", "metric": "metric", "value": "value",
    "step": "step", "_step": "step",
}  # fmt: skip
_UNIT = re.compile(r"\s*\[(?P<unit>(?:[KMG]i?)?B|bytes)\]\s*$", re.IGNORECASE)
_SCALES = {"k": KIB, "m": MIB, "g": GIB, "b": 1}
_NOTHING = re.compile(
    r"\[?(?:N/?A|Not Supported|Unknown Error|Not Found|Insufficient Permissions|GPU is lost|GPU requires reset)\]?|-|", re.IGNORECASE
)
_CARD_INDEX = re.compile(r"\d{1,3}")
_ADDRESS = re.compile(r"GPU-[0-9a-f-]{8,40}|[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")
_SIZE = re.compile(r"\d{1,9} MiB")
_LOOKED_AT = 400


class _Head(Struct):
    """Which columns say what."""

    roles: dict[str, int]
    scales: dict[int, int]
    metrics: dict[int, tuple[str, Metric]]
    """Columns that are a series each."""


def read_comma_table(lines: Sequence[str], builder: SeriesBuilder, title: str = "") -> str | None:
    """Read a table; return None, or why it says nothing or what had to be taken for granted. `title` is the name of its figure."""
    rows = _rows(lines)
    first = next(rows, None)
    if first is None:
        return NO_MEMORY
    head = _head(first, title)
    if head is None:
        return _read_without_head([first, *rows], builder)
    if not head.metrics and "used" not in head.roles and "metric" not in head.roles and not {"free", "total"} <= head.roles.keys():
        return NO_MEMORY
    for row in rows:
        if row != first:
            _read_row(row, head, builder)
    return None


def _rows(lines: Sequence[str]) -> Iterator[list[str]]:
    for line in lines:
        if "," not in line or len(line) > _LONGEST_LINE:
            continue
        line = line.lstrip("# \t").rstrip("\r\n")
        if '"' not in line:
            cells = line.split(",", _MOST_CELLS)
        else:
            try:
                cells = next(csv.reader([line], skipinitialspace=True), [])
            except csv.Error:
                continue
        yield [cell.strip() for cell in cells[:_MOST_CELLS]]


def _head(cells: Sequence[str], title: str) -> _Head | None:
    """Return what the names of columns say; None where the cells are no names."""
    head = _Head({}, {}, {})
    for at, cell in enumerate(cells):
        unit = _UNIT.search(cell)
        name = (cell[: unit.start()] if unit else cell).strip().lower()
        role = _ROLES.get(name)
        if role is not None:
            head.roles.setdefault(role, at)
        if unit:
            head.scales[at] = _SCALES[unit["unit"][0].lower()]
        if role is None and (metric := read_name(cell)) is not None and not cell.endswith(("__MIN", "__MAX")):
            head.metrics[at] = (cell, metric)
    if "value" in head.roles and "metric" not in head.roles and (metric := read_name(title)) is not None:
        head.metrics[head.roles["value"]] = (title, metric)
    is_head = bool(head.roles or head.metrics) and not any(_is_value(cell) for cell in cells)
    return head if is_head else None


def _is_value(cell: str) -> bool:
    return read_number(cell) is not None or read_time(cell) is not None or _SIZE.fullmatch(cell) is not None


def _read_row(row: Sequence[str], head: _Head, builder: SeriesBuilder) -> None:
    roles = head.roles

    def cell(role: str) -> str | None:
        at = roles.get(role)
        return row[at] if at is not None and at < len(row) and not _NOTHING.fullmatch(row[at]) else None

    moment = " ".join(text for text in (cell("date"), cell("time")) if text)
    time = read_time(moment) if moment else None
    step = read_number(cell("step") or "")
    counted = None if step is None else int(step)
    for at, (name, metric) in head.metrics.items():
        number = read_number(row[at]) if at < len(row) else None
        if number is not None and number >= 0:
            builder.add(
                round(number * metric.scale), time, of=metric.of, card=metric.card, name=name, step=counted,
                total=100_000 if metric.is_share else None, is_share=metric.is_share,
            )  # fmt: skip
    if "metric" in roles:
        _read_long(cell("metric"), cell("value"), time, counted, builder)
        return
    if "used" not in roles and "free" not in roles:
        return
    sizes = {role: read_bytes(cell(role) or "", head.scales.get(roles[role], MIB)) for role in ("used", "total", "free") if role in roles}
    used, total, free = (sizes.get(role) for role in ("used", "total", "free"))
    if used is None and total is not None and free is not None and "used" not in roles:
        used = max(0, total - free)
    if "process" in roles:
        process = read_number(cell("process") or "")
        if process is not None:
            card = cell("card") or cell("address")
            builder.add(used, time, of="process", card=card, process=int(process), name=cell("name"), total=total)
    else:
        builder.add(used, time, card=cell("card") or cell("address"), total=total)


def _read_long(key: str | None, value: str | None, time: tuple[float, object] | None, step: int | None, builder: SeriesBuilder) -> None:
    """Read a row that names its figure."""
    metric, number = read_name(key or ""), read_number(value or "")
    if metric is not None and number is not None and number >= 0:
        builder.add(
            round(number * metric.scale), time, of=metric.of, card=metric.card, name=key, step=step,  # type: ignore[arg-type]
            total=100_000 if metric.is_share else None, is_share=metric.is_share,
        )  # fmt: skip


def _read_without_head(rows: Sequence[Sequence[str]], builder: SeriesBuilder) -> str | None:
    """Read the rows of `--format=csv,noheader`: each column is known by what stands in it."""
    width = len(rows[0])
    sample = [row for row in rows[:_LOOKED_AT] if len(row) == width]
    columns = list(zip(*sample))
    roles: dict[str, int] = {}
    sizes: list[int] = []
    for at, column in enumerate(columns):
        cells = [cell for cell in column if not _NOTHING.fullmatch(cell)]
        if not cells:
            continue
        if all(_ADDRESS.fullmatch(cell) for cell in cells):
            roles.setdefault("address", at)
        elif all(read_number(cell) is None and read_time(cell) is not None for cell in cells):
            roles.setdefault("time", at)
        elif all(_SIZE.fullmatch(cell) for cell in cells):
            sizes.append(at)
    bare = not sizes
    for at, column in enumerate(columns):
        cells = [cell for cell in column if not _NOTHING.fullmatch(cell)]
        if at not in (*roles.values(), *sizes) and cells and all(_CARD_INDEX.fullmatch(cell) for cell in cells):
            if "card" not in roles and "address" not in roles and _counts_cards(cells):
                roles["card"] = at
                continue
        if bare and at not in roles.values() and cells and all(cell.isdecimal() for cell in cells):
            sizes.append(at)
    used, total = _used_and_total(columns, sizes)
    if used is None:
        return NO_MEMORY
    roles["used"] = used
    if total is not None:
        roles["total"] = total
    head = _Head(roles, {}, {})
    for row in rows:
        if len(row) == width:
            _read_row(row, head, builder)
    return NO_HEAD


def _counts_cards(cells: Sequence[str]) -> bool:
    """Return whether a column goes round from 0 to the last card, as rows of several cards do, or is 0 all the time."""
    numbers = [int(cell) for cell in cells]
    return max(numbers) < 64 and numbers == [at % (max(numbers) + 1) for at in range(len(numbers))]


def _used_and_total(columns: Sequence[Sequence[str]], sizes: Sequence[int]) -> tuple[int | None, int | None]:
    """Return which column is in use and which the card: the one that stays is the card, where others stay below it."""
    values = {at: [size for cell in columns[at] if (size := read_bytes(cell)) is not None] for at in sizes}
    values = {at: column for at, column in values.items() if column}
    if not values:
        return None, None
    largest = max(values, key=lambda at: max(values[at]))
    stays = len(values) > 1 and len(set(values[largest])) <= 8 and min(values[largest]) >= max(max(column) for column in values.values())
    others = [at for at in values if not (stays and at == largest)]
    # Of used and free the one that is asked for first is used nearly always; both move alike but for the sign.
    varying = [at for at in others if len(set(values[at])) > 1] or others
    return varying[0], largest if stays else None
