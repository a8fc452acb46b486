"""The tables of rules/tables/*.csv: a row a fact, each with its source. Read where they are needed, without the pack."""

from __future__ import annotations

import csv
import os
from functools import lru_cache

from oomdoctor.knowledge.pack import builtin_rules, read_from_zip

Row = dict[str, str]


@lru_cache(maxsize=32)
def table(name: str, root: str | None = None) -> tuple[Row, ...]:
    """Return the rows of one table by column; an empty cell is "". `root` is the folder of the rules, default the built-in one."""
    folder = root or builtin_rules()
    data = _data(os.path.join(folder, "tables", f"{name}.csv"), folder, name)
    return tuple(csv.DictReader(data.decode("utf-8").splitlines()))


def _data(path: str, folder: str, name: str) -> bytes:
    if os.path.isdir(folder):
        with open(path, "rb") as file:
            return file.read()
    return read_from_zip(f"tables/{name}.csv") or b""
