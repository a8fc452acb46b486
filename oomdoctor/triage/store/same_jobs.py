"""Merges the rows of one job that was found in several places: copies, moved logs, exports alongside logs, records alongside both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from oomdoctor.triage.row import RECORD_ONLY, JobRow
from oomdoctor.triage.store.identity import JobNames
from oomdoctor.triage.store.part_family import FamilyNames, PartFamily

_SEEN = 1 << 24
"""The number of slots in which names are counted: few unique names share a slot, and memory is the same for any number of rows."""
_CERTAIN = {"yes": 3, "possible": 2, "no": 1, "unread": 0}
_DATED = {"record": 2, "log": 1, "file": 0}
_NAMED = ("slurm", "kubernetes-pod")
"""Layouts whose rows have the scheduler's name for the job."""
_ROWS = Decoder(JobRow)

_Place = tuple[str, int]
"""A family, and a row in it."""


class SameJobs(Struct, frozen=True):
    """The replacements for rows of jobs that were found in several places."""

    instead: Mapping[_Place, bytes | None]
    """The merged row, at the place of the first; None at the places of the others."""

    def rows(self, families: Iterable[PartFamily]) -> Iterator[bytes]:
        """Yield the rows of families, one per job."""
        for family in families:
            for number, written in enumerate(family.rows):
                row = self.instead.get((family.family, number), written) if self.instead else written
                if row is not None:
                    yield bytes(row)


def find_same_jobs(names: Iterable[FamilyNames], read: Callable[[], Iterable[PartFamily]]) -> SameJobs:
    """Return which rows are the same job according to their names; `read` returns the families each time it is called."""
    shared, referred = _shared(names)
    if not shared and not referred:
        return SameJobs({})
    views = _Views()
    for family in read():
        for number, row_names in enumerate(family.names):
            views.add((family.family, number), row_names, shared, referred)
    return SameJobs(dict(_instead(views.together(), read)))


def _instead(together: Mapping[_Place, int], read: Callable[[], Iterable[PartFamily]]) -> Iterator[tuple[_Place, bytes | None]]:
    """Yield the replacements for rows that are one job; `together` gives that job's number."""
    rows_of: dict[int, list[tuple[_Place, JobRow]]] = {}
    for family in read() if together else ():
        for number, row in enumerate(family.rows):
            job = together.get((family.family, number))
            if job is not None:
                rows_of.setdefault(job, []).append(((family.family, number), _ROWS.decode(row)))
    for rows in rows_of.values():
        (first, _), *others = rows
        yield first, encode(_merged([row for _, row in rows]))
        yield from ((place, None) for place, _ in others)


def _shared(families: Iterable[FamilyNames]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the names that several rows may have as their own, and those by which rows refer to others."""
    met = bytearray(_SEEN)
    shared: set[int] = set()
    referred: set[int] = set()
    for family in families:
        for names in family.names:
            referred.update(names.of)
            for name in names.same:
                place = name % _SEEN
                if met[place]:
                    shared.add(place)
                met[place] = 1
    return frozenset(shared), frozenset(referred)


class _Views:
    """Rows that may be views of one job, joined by the names they share."""

    def __init__(self) -> None:
        self._joined: dict[_Place, _Place] = {}
        self._first: dict[int, _Place] = {}
        self._owners: dict[int, list[_Place]] = {}
        self._referring: list[tuple[_Place, tuple[int, ...]]] = []

    def add(self, place: _Place, names: JobNames, shared: frozenset[int], referred: frozenset[int]) -> None:
        """Add a row, with its names that occur several times and those it refers to."""
        for name in names.same:
            if name % _SEEN in shared:
                self._join(place, self._first.setdefault(name, place))
        for name in names.own:
            if name in referred:
                self._owners.setdefault(name, []).append(place)
        if names.of:
            self._referring.append((place, names.of))

    def together(self) -> dict[_Place, int]:
        """Return the rows that are one job with others, each with that job's number."""
        for place, names in self._referring:
            for name in names:
                owners = {self._root(owner) for owner in self._owners.get(name, ())}
                if len(owners) == 1 or (owners and place[0].startswith(RECORD_ONLY)):
                    self._join(place, min(owners))
                    break
        sizes: dict[_Place, int] = {}
        for place in self._joined:
            root = self._root(place)
            sizes[root] = sizes.get(root, 0) + 1
        numbers = {root: number for number, root in enumerate(root for root, size in sizes.items() if size > 1)}
        return {place: numbers[root] for place in self._joined if (root := self._root(place)) in numbers}

    def _join(self, place: _Place, other: _Place) -> None:
        self._joined.setdefault(place, place)
        self._joined.setdefault(other, other)
        first, second = sorted((self._root(place), self._root(other)))
        self._joined[second] = first

    def _root(self, place: _Place) -> _Place:
        root = place
        while (above := self._joined.get(root, root)) != root:
            root = above
        while place != root:  # one step the next time
            self._joined[place], place = root, self._joined[place]
        return root


def _merged(rows: list[JobRow]) -> JobRow:
    """Return the most informative row about a job, with what only the others know."""
    rows = sorted(rows, key=_weight, reverse=True)
    best = rows[0]
    dated = max(rows, key=_datedness)
    return replace(
        best,
        user=next((row.user for row in rows if row.user), None),
        name=next((row.name for row in rows if row.name), None),
        node=next((row.node for row in rows if row.node), None),
        nodes=next((row.nodes for row in rows if row.nodes), ()),
        also=tuple(dict.fromkeys(file for row in rows for file in row.files if file not in best.files)),
        ended=dated.ended,
        day=dated.day,
        day_source=dated.day_source,
        zone=dated.zone,
    )


def _weight(row: JobRow) -> tuple[bool, int, bool, bool, int]:
    """Return how informative a row is: logs rank above records, then the verdict, the name, and how new it is."""
    return bool(row.files), _CERTAIN[row.memory_failure], row.evidence == "log", row.layout.startswith(_NAMED), row.scanned_at


def _datedness(row: JobRow) -> tuple[int, int]:
    """Return how well a row dates the job's end: with file times alone, the oldest is best, since a copy is newer than its original."""
    source = _DATED.get(row.day_source or "", -1)
    ended = row.ended or 0
    return source, ended if source else -ended
