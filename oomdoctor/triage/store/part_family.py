"""A line of a part: a family of files with its rows, as written."""

from __future__ import annotations

from msgspec import Raw, Struct

from oomdoctor.triage.store.identity import JobNames
from oomdoctor.triage.store.quiet_logs import QuietLog


class FamilyNames(Struct, frozen=True):
    """A line of a part, with only the keys that identify its rows."""

    names: list[JobNames] = []


class PartFamily(Struct, frozen=True, omit_defaults=True):
    """A line of a part: a family, what shows whether its files changed, and its rows as written."""

    family: str
    key: str
    rows: list[Raw]
    names: list[JobNames] = []
    """The keys that identify each row."""
    records: str = ""
    """A hash of what the records say about its jobs; empty if they say nothing."""
    quiet: list[QuietLog] = []
    """Its larger logs that can be read on from their end."""
