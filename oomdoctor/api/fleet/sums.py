"""The results of a completed triage, from its store: for monitors, and for notifications about what is new."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.triage.groups import Fleet, Group, summarise
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.known_groups import KnownGroups, known_groups, last_run
from oomdoctor.triage.store.parts import Parts
from oomdoctor.triage.window import ALL, TimeWindow


class FailureKey(Struct, frozen=True, order=True):
    """What memory failures are counted by: few values each, whatever the number of jobs and users."""

    kind: str
    signature: str
    partition: str


class FleetSums(Struct, frozen=True, kw_only=True):
    """A fleet in figures."""

    fleet: Fleet
    known: KnownGroups
    failures: dict[FailureKey, int]
    ended: int | None
    """When the last run ended, in seconds since 1970."""

    @property
    def news(self) -> list[Group]:
        """Return the groups that the last run saw for the first time, and those that came back, the largest first."""
        fresh = frozenset(self.known.news)
        return [group for group in self.fleet.largest if group.id in fresh]

    def news_since(self, run: int) -> list[Group]:
        """Return the groups that a run after that one saw first or saw come back, the oldest news first, then the largest."""
        news = {name: group.news_of for name, group in self.known.groups.items() if group.news_of > run}
        return sorted((group for group in self.fleet.largest if group.id in news), key=lambda group: news[group.id])


def sum_up(store: str, window: TimeWindow = ALL) -> FleetSums:
    """Return the figures of a store, for the jobs in a window; memory grows with what is counted, not with the number of rows."""
    failures: Counter[FailureKey] = Counter()
    fleet = summarise(_counted(Parts(os.path.join(store, "parts")).rows(window), failures), window)
    return FleetSums(fleet=fleet, known=known_groups(store), failures=dict(failures), ended=last_run(store))


def _counted(rows: Iterator[JobRow], failures: Counter[FailureKey]) -> Iterator[JobRow]:
    for row in rows:
        if row.memory_failure == "yes":
            failures[FailureKey(row.kind, row.signature or "", row.partition or "")] += 1
        yield row
