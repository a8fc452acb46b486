"""Since which release a server loads a model, by the model's name (`rules/tables/served_since.csv`)."""

from __future__ import annotations

from fnmatch import fnmatchcase

from oomdoctor.knowledge.tables.csv_table import table


def served_since(server: str, *names: str | None) -> str | None:
    """Return the first release of a server that loads the first of these names that a row has; None where that is not known."""
    for name in names:
        last = (name or "").rstrip("/").rpartition("/")[2].lower()
        row = next((row for row in table("served_since") if fnmatchcase(last, f"*{row['has']}*")), None)
        if row is not None:
            return row.get(server) or None
    return None
