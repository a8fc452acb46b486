"""Questions in SQL over the rows of a triage."""

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
"""So long a question may take where nobody says."""


def query(sql: str, *, store: str | None = None, rows: str | None = None, seconds: float = SECONDS) -> Answer:
    """Answer one SELECT over the table `jobs`: the rows of a store, or those in a file that triage wrote.

    The rows of a store are kept as one file beside its parts, made anew when they changed. Raise UsageError where the query is none, or
    asks for more than the rows, or for longer than `seconds`.
    """
    if rows is not None:
        return answer_query(sql, rows, seconds)
    path, problems = _table(store or ".")
    return replace(answer_query(sql, path, seconds), problems=tuple(problems))


def _table(store: str) -> tuple[str, list[str]]:
    """Return the file of a store's rows, made where there is none that is up to date, and what is missing in it.

    Its name tells of which parts it was made and what stands in it, so that a damaged one is made anew.
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
