"""The tables of nvidia-smi in a log: memory of each GPU and of each process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oomdoctor.case.event import Value
from oomdoctor.parse.nvidia_smi import Row, SmiGpu, SmiHeader, SmiProcess, has_whole_process_table, read_rows
from oomdoctor.parse.signature import Match


def parse(text: str) -> Iterator[Match]:
    """Return the messages of the tables in `text`."""
    table: Mapping[str, Value] = {"table": "whole"} if has_whole_process_table(text) else {}
    for row in read_rows(text):
        signature, fields = _message(row, table)
        if fields:
            yield Match(signature, row.start, row.end, {name: value for name, value in fields.items() if value is not None})


def _message(row: Row, table: Mapping[str, Value]) -> tuple[str, Mapping[str, Value | None]]:
    """Return the signature and the fields of a row; no fields if it says nothing about memory."""
    if isinstance(row, SmiHeader):
        return "nvidia-smi-header", {"smi_version": row.smi, "driver_version": row.driver, "cuda_version": row.cuda}
    if isinstance(row, SmiProcess):
        process: Mapping[str, Value | None] = {
            "gpu_index": row.index,
            "pid": row.pid,
            "type": row.type,
            "name": row.name,
            "used_bytes": row.used_bytes,
        }
        return "nvidia-smi-process-row", process if row.used_bytes is not None else {}
    if isinstance(row, SmiGpu) and row.index is not None:
        card = {
            "gpu_index": row.index,
            "name": row.name,
            "bus_id": row.bus_id,
            "used_bytes": row.used_bytes,
            "total_bytes": row.total_bytes,
        }
        return "nvidia-smi-gpu-row", {**card, **table} if row.used_bytes is not None else {}
    # A GPU whose first line is not in the log, or a MIG device: to its program it is the GPU.
    return "nvidia-smi-gpu-row", {"used_bytes": row.used_bytes, "total_bytes": row.total_bytes}
