"""The failing request: which allocation of which program failed, with what it grows, and what is in force of that."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.settings import Scalar
from oomdoctor.case.text import Text

KnownBy = Literal["written", "message", "default"]
"""Whether a value was written by somebody, printed by the failing message, or is what the program takes by itself."""


class QuantityGrowth(Struct, frozen=True, kw_only=True):
    """A quantity with which a request grows."""

    quantity: str
    """A setting by the name that all frameworks share, or a size of the model or its input (rules/operations.yaml)."""
    title: Text
    power: float
    """Below 0 where the request falls as the quantity rises."""


class SettingInForce(Struct, frozen=True, kw_only=True):
    """The value of a setting with which a request grows, and where it is known from."""

    setting: str
    value: Scalar
    key: str | None = None
    """As it is written."""
    file: str | None = None
    """The config or log that says it; None for a default."""
    line: int | None = None
    known_by: KnownBy = "written"


class FailingRequest(Struct, frozen=True, kw_only=True):
    """What asked for the memory that was not there. Sizes are bytes; what nobody says is None."""

    id: str | None = None
    """The row of rules/requests; None where nothing shows which operation it was."""
    operation: str | None = None
    title: Text | None = None
    """What was being allocated: a noun."""
    program: str | None = None
    """The program that asked, or the one whose settings decide."""
    size: int | None = None
    free: int | None = None
    total: int | None = None
    limit: int | None = None
    held_by_others: int | None = None
    missing: int | None = None
    """What was asked for beyond what was free."""
    grows_with: tuple[QuantityGrowth, ...] = ()
    in_force: tuple[SettingInForce, ...] = ()
    settled_by: Text | None = None
    """What tells what the log cannot."""
    command: str | None = None
    """What gets that."""
