"""SQL queries over the rows of a triage."""

from __future__ import annotations

import os
from contextlib import suppress

from msgspec.structs import replace

from oomdoctor.triage.store.changes import digest_of_file
from oomdoctor.triage.store.damage import told_to_readers
from oomdoctor.triage.store.export import write_rows
from oomdoctor.triage.store.parts import Parts
from oomdoctor.triage.store.sql import Answer, answer_query, has_duckdb

SECONDS = 60.0
"""The default time limit of a query."""


def query(sql: str, *, store: str | None = None, rows: str | None = None, seconds: float = SECONDS) -> Answer:
    """Answer one SELECT over the table `jobs`: the rows of a store, or those in a file written by triage.

    The rows of a store are kept as one file next to its parts, rebuilt when they change. Raise UsageError if the query is invalid, or
    requests more than the rows, or takes longer than `seconds`.
    """
    if rows is not None:
        return answer_query(sql, rows, seconds)
    path, problems = _table(store or ".")
    return replace(answer_query(sql, path, seconds), problems=tuple(problems))


def _table(store: str) -> tuple[str, list[str]]:
    """Return the file of a store's rows, created if none is up to date, and what is missing in it.

    Its name shows which parts it was made from and what it contains, so that a damaged one is rebuilt.
    """
    folder, ending = os.path.join(store, "parts"), "parquet" if has_duckdb() else "sqlite"
    made_of = Parts(folder).digest()
    tables = [name for name in os.listdir(store) if name.startswith("rows-")]
    for name in tables:
        path = os.path.join(store, name)
        if name.startswith(f"rows-{made_of}-") and os.path.isfile(path) and name == _name(made_of, path, ending):
            return path, []
    problems = told_to_readers(store)
    new = os.path.join(store, f"rows-new.{ending}")
    write_rows(folder, new)
    path = os.path.join(store, _name("damaged" if problems else made_of, new, ending))
    os.replace(new, path)
    for name in tables:
        if name != os.path.basename(path):
            with suppress(OSError):
                os.unlink(os.path.join(store, name))
    return path, problems


def _name(made_of: str, path: str, ending: str) -> str:
    return f"rows-{made_of}-{digest_of_file(path)}.{ending}"
