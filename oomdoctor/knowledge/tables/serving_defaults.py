"""What servers take where nobody says it, by their version and the size of the card: `rules/tables/serving_defaults.csv`."""

from __future__ import annotations

from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.units import GIB
from oomdoctor.versions import at_least, parse_version


def serving_default(program: str, name: str, *, card: int, card_name: str = "", version: str | None = None, tensor: int = 1) -> str:
    """The value of a setting on a card of `card` bytes; a version that is not known is the newest of the table.

    Of several rows the first that holds counts.
    """
    of = [row for row in table("serving_defaults") if row["program"] == program and row["name"] == name]
    return next(row["value"] for row in of if _is_meant(row, card, card_name.lower(), version, tensor))


def _is_meant(row: Row, card: int, card_name: str, version: str | None, tensor: int) -> bool:
    if row["except_card"] and row["except_card"] in card_name:
        return False
    return _counts(row, version) and card >= GIB * float(row["card_gb"] or 0) and tensor >= int(row["tensor"] or 1)


def _counts(row: Row, version: str | None) -> bool:
    """Whether a row is of this version; `until` is the first that differs."""
    if parse_version(version) is None:
        return not row["until"]
    return at_least(version, row["since"]) is not False and not at_least(version, row["until"])
