"""How a run is watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class WatchOptions(NamedTuple):
    """What somebody asks for."""

    version: str
    """Of oomdoctor."""
    out: str | None = None
    level: int = 1
    log: str | None = None
    attempt: int = 1
    retries: int = 0
    """How often a run that failed may be tried again."""
    describe: Callable[[str | None], bytes] | None = None
    """Describes the machine and an interpreter as JSON; may take seconds."""
