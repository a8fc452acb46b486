"""How long the requests of a model may be, by its name: base and chat models of one shape differ (`rules/tables/request_lengths.csv`)."""

from __future__ import annotations

from fnmatch import fnmatchcase

from oomdoctor.knowledge.tables.csv_table import table


def request_length(*names: str | None) -> int | None:
    """Return the tokens of the longest request of the first of these names that a row has; None where none has one."""
    for name in names:
        last = (name or "").rstrip("/").rpartition("/")[2].lower()
        row = next((row for row in table("request_lengths") if fnmatchcase(last, f"{row['begins']}*")), None)
        if row is not None:
            return int(row["tokens"])
    return None
