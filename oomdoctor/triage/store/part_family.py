"""A line of a part: a family of files with its rows, as they were written."""

from __future__ import annotations

from msgspec import Raw, Struct

from oomdoctor.triage.store.identity import JobNames
from oomdoctor.triage.store.quiet_logs import QuietLog


class FamilyNames(Struct, frozen=True):
    """Of a line of a part only what its rows are known by."""

    names: list[JobNames] = []


class PartFamily(Struct, frozen=True, omit_defaults=True):
    """A line of a part: a family, what tells whether its files changed, and its rows as they were written."""

    family: str
    key: str
    rows: list[Raw]
    names: list[JobNames] = []
    """What each of the rows is known by."""
    records: str = ""
    """A hash of what the records say of its jobs; empty where they say nothing."""
    quiet: list[QuietLog] = []
    """Its larger logs that can be read on from where they end."""
