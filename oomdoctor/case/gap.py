"""What is not known of a run or a machine, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    pass


class Gap(Struct, frozen=True):
    """A thing that is not known, why, and how to learn it."""

    what: str
    why: str
    how: str | None = None
