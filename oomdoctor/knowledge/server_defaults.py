"""What a server takes where nobody says it, by its version and the size of the card."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.knowledge.records.server import ServerDefault
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.units import GIB
from oomdoctor.versions import in_span, parse_version


def default_value(
    defaults: Sequence[ServerDefault], *, card: int, card_name: str = "", version: str | None = None, tensor: int = 1
) -> int | float | bool:
    """Return the value on a card of `card` bytes; a version that is not known is the newest of the defaults.

    Of several defaults the first that holds counts, else the last.
    """
    row = held_default(defaults, card=card, card_name=card_name, version=version, tensor=tensor)
    return (row or defaults[-1]).value


def held_default(
    defaults: Sequence[ServerDefault], *, card: int, card_name: str = "", version: str | None = None, tensor: int = 1
) -> ServerDefault | None:
    """Return the first default that holds; None where none does."""
    return next((default for default in defaults if _holds(default, card, card_name.lower(), version, tensor)), None)


def window_tokens(version: str | None, *names: str | None) -> float | None:
    """Return the tokens that SGLang's layers with a window get for each token of the others (`rules/tables/window_pools.csv`).

    None where all layers keep all tokens, or nothing says otherwise. The first name that a row has counts.
    """
    for name in names:
        last = (name or "").rstrip("/").rpartition("/")[2].lower()
        named = [row for row in table("window_pools") if row["has"] in last]
        if named:
            return next((float(row["ratio"]) for row in named if _is_between(version, row["since"], row["until"] or None)), None)
    return None


def _holds(default: ServerDefault, card: int, card_name: str, version: str | None, tensor: int) -> bool:
    if default.except_card and default.except_card in card_name:
        return False
    if default.only_card and default.only_card not in card_name:
        return False
    return _is_between(version, default.since, default.until) and card >= GIB * default.card_gb and tensor >= default.tensor


def _is_between(version: str | None, since: str | None, until: str | None) -> bool:
    """Return whether a version is one of those; one that is not known is the newest."""
    if parse_version(version) is None:
        return until is None
    return in_span(version, since, until)
