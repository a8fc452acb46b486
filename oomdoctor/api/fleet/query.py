"""Questions in SQL over the rows of a triage."""

from __future__ import annotations

import os
from contextlib import suppress

from oomdoctor.triage.store.export import write_rows
from oomdoctor.triage.store.parts import Parts
from oomdoctor.triage.store.sql import Answer, answer_query, has_duckdb

SECONDS = 60.0
"""So long a question may take where nobody says."""


def query(sql: str, *, store: str | None = None, rows: str | None = None, seconds: float = SECONDS) -> Answer:
    """Answer one SELECT over the table `jobs`: the rows of a store, or those in a file that triage wrote.

    The rows of a store are kept as one file beside its parts, made anew when they changed. Raise UsageError where the query is none, or
    asks for more than the rows, or for longer than `seconds`.
    """
    return answer_query(sql, rows if rows is not None else _table(store or "."), seconds)


def _table(store: str) -> str:
    """Return the file of a store's rows, made where there is none that is up to date."""
    folder = os.path.join(store, "parts")
    path = os.path.join(store, f"rows-{Parts(folder).digest()}.{'parquet' if has_duckdb() else 'sqlite'}")
    if not os.path.exists(path):
        write_rows(folder, path)
        for name in os.listdir(store):
            if name.startswith("rows-") and name.endswith((".parquet", ".sqlite")) and name != os.path.basename(path):
                with suppress(OSError):
                    os.unlink(os.path.join(store, name))
    return path
