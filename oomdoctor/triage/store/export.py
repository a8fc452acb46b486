"""Rows out of the parts into one file: JSON lines, SQLite or Parquet, by the name of the file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_origin, get_type_hints

from msgspec.json import decode, encode
from msgspec.structs import fields

from oomdoctor.errors import UsageError
from oomdoctor.extras import load_extra
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.parts import Parts
from oomdoctor.triage.window import ALL, TimeWindow

_BATCH = 20_000
_COLUMNS = tuple(field.name for field in fields(JobRow))


def write_rows(folder: str, path: str, window: TimeWindow = ALL) -> None:
    """Write the rows of the parts in a folder to one file, whole or not at all. Raise UsageError where it cannot be written."""
    write_table(Parts(folder).raw_rows(window), path)


def write_table(rows: Iterable[bytes], path: str) -> None:
    """Write rows, each as JSON, to a file of the form that its name says. Raise UsageError where it cannot be written."""
    writers = {".jsonl": _json_lines, ".ndjson": _json_lines, ".sqlite": _sqlite, ".db": _sqlite, ".parquet": _parquet}
    writer = writers.get(os.path.splitext(path)[1].lower())
    if writer is None:
        raise UsageError(f"--output {path}: rows are written as .jsonl, .sqlite or .parquet")
    new = f"{path}.new"
    try:
        if os.path.exists(new):  # a run that was killed left it
            os.unlink(new)
        writer(rows, new)
        os.replace(new, path)
    except OSError as why:
        raise UsageError(f"cannot write {path}: {(why.strerror or str(why)).lower()}") from why
    finally:
        if os.path.exists(new):
            os.unlink(new)


def _json_lines(rows: Iterable[bytes], path: str) -> None:
    with open(path, "wb") as file:
        file.writelines(row + b"\n" for row in rows)


def _sqlite(rows: Iterable[bytes], path: str) -> None:
    base = sqlite3.connect(path)
    fill_sqlite(base, rows)
    base.close()


def fill_sqlite(base: sqlite3.Connection, rows: Iterable[bytes]) -> None:
    """Put rows into a new table `jobs`."""
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    with base:
        base.execute(f"CREATE TABLE jobs ({names})")
        base.executemany(f"INSERT INTO jobs VALUES ({', '.join('?' * len(_COLUMNS))})", map(_cells, rows))
        base.execute('CREATE INDEX by_group ON jobs ("group")')


def _cells(row: bytes) -> tuple[str | int | float | None, ...]:
    """Return the values of a row; lists and objects as JSON."""
    told = decode(row, type=dict[str, str | int | float | bool | list[object] | dict[str, object] | None])
    return tuple(encode(value).decode() if isinstance(value := told.get(name), (list, dict)) else value for name in _COLUMNS)


def _parquet(rows: Iterable[bytes], path: str) -> None:
    parquet, pyarrow = (load_extra(module, "fleet", "Parquet") for module in ("pyarrow.parquet", "pyarrow"))
    schema = _arrow_schema(pyarrow)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(rows):
            writer.write_table(pyarrow.Table.from_pylist([_flat(decode(row)) for row in batch], schema=schema))


def _batches(rows: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _flat(told: dict[str, object]) -> dict[str, object]:
    """Return a row with its versions as JSON: every column has one type."""
    return {**told, "versions": encode(told.get("versions", {})).decode()}


def _arrow_schema(pyarrow: Any) -> Any:
    """Return the types of the columns, from those of a row."""
    unread = pyarrow.list_(pyarrow.struct([("path", pyarrow.string()), ("why", pyarrow.string())]))
    kinds = {int: pyarrow.int64(), bool: pyarrow.bool_(), tuple: pyarrow.list_(pyarrow.string())}
    columns = []
    for name, hint in get_type_hints(JobRow).items():
        told = {get_origin(part) or part for part in (hint, *get_args(hint))}
        kind = next((arrow for type_, arrow in kinds.items() if type_ in told), pyarrow.string())
        columns.append((name, unread if name == "unreadable" else kind))
    return pyarrow.schema(columns)
