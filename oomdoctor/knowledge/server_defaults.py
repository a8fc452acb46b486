"""What a server takes where nobody says it, by its version and the size of the card."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.knowledge.records.server import ServerDefault
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


def _holds(default: ServerDefault, card: int, card_name: str, version: str | None, tensor: int) -> bool:
    if default.except_card and default.except_card in card_name:
        return False
    if default.only_card and default.only_card not in card_name:
        return False
    return _is_of_version(default, version) and card >= GIB * default.card_gb and tensor >= default.tensor


def _is_of_version(default: ServerDefault, version: str | None) -> bool:
    if parse_version(version) is None:
        return default.until is None
    return in_span(version, default.since, default.until)
