"""A store that a command reads: the one that is named, or that of the last triage; what is missing in it is said."""

from __future__ import annotations

from oomdoctor.api.fleet.stores import last_store
from oomdoctor.cli.output import complain
from oomdoctor.triage.store.damage import told_to_readers


def open_store(named: str | None) -> str:
    """Return where a store lies. Raise UsageError where there is none."""
    store = last_store(named)
    complain(told_to_readers(store))
    return store
