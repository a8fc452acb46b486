"""The failing request: which allocation of which program failed, what it grows with, and the settings in force."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.settings import Scalar
from oomdoctor.case.text import Text

KnownBy = Literal["written", "message", "default"]
"""Whether a value was written by someone, printed by the failing message, or is the program's default."""


class QuantityGrowth(Struct, frozen=True, kw_only=True):
    """A quantity with which a request grows."""

    quantity: str
    """A setting by the name that all frameworks share, or a size of the model or its input (rules/operations.yaml)."""
    title: Text
    power: float
    """Below 0 if the request shrinks as the quantity rises."""


class SettingInForce(Struct, frozen=True, kw_only=True):
    """The value of a setting with which a request grows, and its origin."""

    setting: str
    value: Scalar
    key: str | None = None
    """As it is written."""
    file: str | None = None
    """The config or log that states it; None for a default."""
    line: int | None = None
    known_by: KnownBy = "written"


class FailingRequest(Struct, frozen=True, kw_only=True):
    """What requested the memory that was not available. Sizes are bytes; anything not stated is None."""

    id: str | None = None
    """The row of rules/requests; None if nothing shows which operation it was."""
    operation: str | None = None
    title: Text | None = None
    """What was being allocated: a noun."""
    program: str | None = None
    """The program that made the request, or the one whose settings decide."""
    size: int | None = None
    free: int | None = None
    total: int | None = None
    limit: int | None = None
    held_by_others: int | None = None
    missing: int | None = None
    """How much the request exceeded the free memory."""
    grows_with: tuple[QuantityGrowth, ...] = ()
    in_force: tuple[SettingInForce, ...] = ()
    settled_by: Text | None = None
    """The evidence that shows what the log cannot."""
    command: str | None = None
    """The command that gets it."""
