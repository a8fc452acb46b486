"""Why a program does not start, whatever memory is available: a check that it makes of its settings."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.text import Text


class StartupRefusal(Struct, frozen=True, kw_only=True):
    """A setting that a program refuses."""

    id: str
    """The check, as named in `rules/tables/refusals.csv`."""
    program: str
    """As people write it."""
    message: str
    """What the program prints; `...` stands for what is not known here."""
    why: Text
    setting: str
    """The setting to change, by the name that all frameworks share."""
    instead: tuple[int, ...] = ()
    """Values that the program accepts, the nearest first."""
    source: str
