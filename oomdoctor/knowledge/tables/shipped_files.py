"""rules/tables/shipped_files.csv: DeepSpeed and accelerate files that frameworks bring along."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.knowledge.tables.csv_table import table


def shipped_file(name: str) -> Mapping[str, str] | None:
    """Return what is known of a file of this name; None where no framework ships one."""
    return next((row for row in table("shipped_files") if row["name"] == name), None)
