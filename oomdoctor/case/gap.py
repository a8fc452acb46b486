"""What is not known about a run or a machine, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    pass


class Gap(Struct, frozen=True):
    """Something unknown, the reason, and how to find out."""

    what: str
    why: str
    how: str | None = None
