"""SQL queries over rows: a query can read the table `jobs` and nothing else. DuckDB is used if installed, otherwise SQLite.

A query may come from somebody else, so what is open to it is closed first: other files, the network, extensions, settings, and
everything but one statement that selects.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Event, Timer
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import DecodeError, Struct

from oomdoctor.errors import UsageError
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.export import fill_sqlite

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_CLOSED = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}
"""DuckDB settings: nothing is fetched, no Python variable becomes a table, nothing is written outside memory."""


_ONE_SELECT = "a query is a single SELECT that reads only the table `jobs`"


class Answer(Struct, frozen=True):
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    problems: tuple[str, ...] = ()
    """What is missing in the queried rows, one line each."""


def has_duckdb() -> bool:
    """Return whether DuckDB and a package that writes Parquet are installed."""
    return find_spec("duckdb") is not None and find_spec("pyarrow") is not None


def answer_query(sql: str, path: str, seconds: float) -> Answer:
    """Answer a query over a file of rows (.parquet, .jsonl, .sqlite).

    Raise UsageError where it is no query, asks for more than rows, or for longer than `seconds`.
    """
    form = os.path.splitext(path)[1].lower()
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file")
    if form in (".sqlite", ".db"):
        return _by_sqlite(sql, lambda: sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True), seconds)
    if form not in (".parquet", ".jsonl", ".ndjson"):
        raise UsageError(f"{path}: rows are read from .parquet, .jsonl and .sqlite")
    if find_spec("duckdb") is not None:
        return _by_duckdb(sql, path, form, seconds)
    if form == ".parquet":
        raise UsageError('Parquet needs DuckDB: pip install "oomdoctor[fleet]"')
    return _by_sqlite(sql, lambda: _loaded(path), seconds)


@contextmanager
def _stopped_after(seconds: float, stop: Callable[[], object]) -> Iterator[None]:
    """Stop whatever runs inside if it takes longer than `seconds`. Raise UsageError if it did."""
    is_late = Event()

    def end() -> None:
        is_late.set()
        stop()

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as why:
        if is_late.is_set():
            raise UsageError(f"the query was stopped after {seconds:g} s; raise the limit with --timeout") from why
        raise
    finally:
        timer.cancel()


def _by_duckdb(sql: str, path: str, form: str, seconds: float) -> Answer:
    import duckdb  # noqa: PLC0415 - 24 MiB, for those who ask

    base = duckdb.connect(":memory:", config=_CLOSED)
    name = path.replace("'", "''")
    source = f"read_parquet('{name}')" if form == ".parquet" else f"read_json('{name}', format = 'newline_delimited', columns = {_types()})"
    try:
        base.execute(f"CREATE VIEW jobs AS SELECT * FROM {source}")  # noqa: S608 - the name of the file is quoted
        base.execute(f"SET allowed_paths = ['{name}']")
        base.execute("SET enable_external_access = false")
        base.execute("SET lock_configuration = true")
        statements = base.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise UsageError(_ONE_SELECT)
        with _stopped_after(seconds, base.interrupt):
            result = base.execute(statements[0])
            return Answer(tuple(column[0] for column in result.description or ()), result.fetchall())
    except duckdb.Error as why:
        raise UsageError(f"the query failed: {_first_line(why)}") from why
    finally:
        base.close()


def _types() -> str:
    """Return the column types of JSON lines as written by DuckDB."""
    kinds = {int: "BIGINT", bool: "BOOLEAN", tuple: "VARCHAR[]", dict: "JSON"}
    columns = []
    for name, hint in get_type_hints(JobRow).items():
        told = {get_origin(part) or part for part in (hint, *get_args(hint))}
        kind = next((type_ for python, type_ in kinds.items() if python in told), "VARCHAR")
        columns.append(f"\"{name}\": '{'STRUCT(path VARCHAR, why VARCHAR)[]' if name == 'unreadable' else kind}'")
    return "{" + ", ".join(columns) + "}"


def _by_sqlite(sql: str, connect: Callable[[], sqlite3.Connection], seconds: float) -> Answer:
    try:
        base = connect()
        base.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY)
        with _stopped_after(seconds, base.interrupt):
            result = base.execute(sql)
            if result.description is None:
                raise UsageError(_ONE_SELECT)
            answer = Answer(tuple(column[0] for column in result.description), result.fetchall())
        base.close()
    except (sqlite3.Error, sqlite3.Warning) as why:
        is_refused = "not authorized" in str(why)  # SQLite's message for an operation it was told to deny
        raise UsageError(_ONE_SELECT if is_refused else f"the query failed: {_first_line(why)}") from why
    return answer


def _loaded(path: str) -> sqlite3.Connection:
    base = sqlite3.connect(":memory:")
    try:
        with open(path, "rb") as file:
            lines: Iterable[bytes] = (line for line in file if line.strip())
            fill_sqlite(base, lines)
    except OSError as why:
        raise UsageError(f"{path}: {(why.strerror or str(why)).lower()}") from why
    except (DecodeError, UnicodeDecodeError, OverflowError) as why:
        raise UsageError(f"{path}: not triage rows: {_first_line(why)}") from why
    return base


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _first_line(why: Exception) -> str:
    return (str(why).splitlines() or [type(why).__name__])[0]
