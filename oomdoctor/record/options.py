"""How a run is watched: what somebody asks for, and what is made of it before the command starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from oomdoctor.record.evidence_place import EvidencePlace
from oomdoctor.record.injection import Injection
from oomdoctor.record.output import Recorded
from oomdoctor.record.sampling.before import KernelBefore


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


class Prepared(NamedTuple):
    """What is there when the command starts."""

    place: EvidencePlace
    recorded: Recorded
    injection: Injection | None
    before: KernelBefore
    rank: int | None = None
    """Which of a launcher's tasks the command is."""
