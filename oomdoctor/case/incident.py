"""Incidents: one failure, its root event and the consequences that follow from it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from oomdoctor.case.event import Certainty, Event, Kind


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """One part of a memory ledger; the parts of one ledger add up to its total."""

    what: str
    bytes: int
    of: str
    source: str
    """`measured` (printed), `derived` (computed from what is printed) or `estimated`."""


class Incident(Struct, frozen=True, kw_only=True):
    """One failure: the first message that states it, its repetitions, and what followed from it."""

    root: Event
    kind: Kind
    certainty: Certainty
    repeats: tuple[Event, ...] = ()
    """Further messages of the same failure: other ranks, other lines."""
    count: int = 1
    """How often the root's message was seen, including unread repetitions."""
    consequences: tuple[Event, ...] = ()
    survived: bool = False
    phase: str | None = None
    steps_passed: int | None = None
    """How many training steps the log shows before it."""
    traceback: str = ""
    """The frames that lead to it, as its writer printed them, without the message."""
    computes: str | None = None
    """What was being computed; None if no frame shows it."""
    ranks: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    derived: Mapping[str, int | float | str | None] = field(default_factory=dict)
    ledger: tuple[LedgerEntry, ...] = ()
