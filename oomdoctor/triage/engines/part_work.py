"""The work on one part: unchanged families are kept, the rest is read, and the part is rewritten. It is the same on every engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Raw, Struct
from msgspec.json import Decoder, encode

from oomdoctor import __version__
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.triage.elsewhere.downloads import ToRead, brought_here
from oomdoctor.triage.engines.read_ahead import asked_ahead
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.scheduler.records import Records
from oomdoctor.triage.store.part_family import PartFamily
from oomdoctor.triage.store.parts import FORMAT, Basis, Parts, family_key, placed_files
from oomdoctor.triage.store.quiet_logs import QuietLogs
from oomdoctor.triage.work import Redact, Worker, record_name


class Task(Struct, frozen=True):
    """Everything a worker needs to know besides the number of a part."""

    folder: str
    """The folder of the parts."""
    lock: str
    """The file locked by the processes of one triage."""
    redact: Redact
    tool: str
    rules_version: str
    rules: str | None = None
    """A folder of rules laid over the built-in ones."""
    records: str | None = None
    """The file with the scheduler's records."""
    records_version: str = ""
    """A value that stays the same as long as the records do."""
    refresh: bool = False
    """Whether to read everything again, changed or not."""


class _Named(Struct):
    """The values in a row by which its records are found."""

    job: str
    native: str
    layout: str


_NAMES = Decoder(_Named)


class Finished(Struct, frozen=True):
    """The result of the work on a part."""

    number: int
    files: int
    families: int
    read: int
    """How many families were read instead of being kept unchanged."""
    problem: str | None = None
    """Why it was not finished after all."""


def finish(task: Task, number: int) -> Finished:
    """Bring a part up to date, in a process that works for one task. Raise UsageError if this process has a different version."""
    if task.tool != __version__:
        raise UsageError(f"oomdoctor {__version__} is installed on the worker, but the caller has {task.tool}")
    return _worker(task).finish(number)


@lru_cache(maxsize=1)
def _worker(task: Task) -> PartWorker:
    return PartWorker(task)


class PartWorker:
    """Works on parts, one after another."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._parts = Parts(task.folder)
        self._worker: Worker | None = None
        self._records = None if task.records is None else Records(task.records)

    def finish(self, number: int) -> Finished:
        """Bring a part up to date."""
        listing, lines = self._parts.listed(number)
        now = Basis(listing, self._task.rules_version, self._task.records_version)
        part = self._parts.read(number)
        basis = None if part is None or part.head is None else part.head.basis
        if not self._task.refresh and basis == now and part is not None and part.is_whole:
            return Finished(number, len(lines), 0, 0)
        families = self._parts.families(lines)
        known = {} if part is None else part.families
        made = list(self._made(families, known, basis))
        gone = [family for name, family in known.items() if name not in families]
        self._parts.write(number, now, sorted((*(family for family, _ in made), *gone), key=lambda family: family.family))
        return Finished(number, len(lines), len(families), sum(is_new for _, is_new in made))

    def _made(
        self, families: Mapping[str, Sequence[Raw]], known: Mapping[str, PartFamily], basis: Basis | None
    ) -> Iterator[tuple[PartFamily, bool]]:
        """Yield each family with its rows, and whether it was read."""
        is_usable = basis is not None and (basis.rules, basis.format) == (self._task.rules_version, FORMAT) and not self._task.refresh
        usable = known if is_usable else {}
        unchanged: list[PartFamily] = []
        for family in brought_here(asked_ahead(self._to_read(families, basis, usable, unchanged))):
            before = usable.get(family.family)
            quiet = QuietLogs(() if before is None else before.quiet)
            made = list(self._reader().rows(family.family, family.files, quiet))
            rows, names = [row for row, _ in made], [known_by for _, known_by in made]
            written = [Raw(encode(row)) for row in rows]
            yield PartFamily(family.family, family.key, written, names, self._told(rows), quiet.now), True
        yield from ((family, False) for family in unchanged)

    def _to_read(
        self,
        families: Mapping[str, Sequence[Raw]],
        basis: Basis | None,
        usable: Mapping[str, PartFamily],
        unchanged: list[PartFamily],
    ) -> Iterator[ToRead]:
        """Yield the families that have to be read; unchanged ones are added to `unchanged`."""
        for name, written in families.items():
            files = placed_files(written)
            key = family_key(files)
            kept = usable.get(name)
            if kept is not None and kept.key == key and self._is_told_the_same(basis, kept):
                unchanged.append(kept)
            else:
                yield ToRead(name, key, files)

    def _is_told_the_same(self, basis: Basis | None, kept: PartFamily) -> bool:
        """Return whether the records say the same about a family's jobs as when it was read."""
        if basis is not None and basis.records == self._task.records_version:
            return True
        return kept.records == self._told(map(_NAMES.decode, kept.rows))

    def _told(self, rows: Iterable[_Named | JobRow]) -> str:
        """Return a hash of what the records say about the jobs of some rows."""
        if self._records is None:
            return ""
        return self._records.digest([record_name(row.layout, row.job, row.native) for row in rows])

    def _reader(self) -> Worker:
        if self._worker is None:
            pack = load_pack(over=self._task.rules)
            self._worker = Worker(pack, self._task.redact, tool=self._task.tool, rules=self._task.rules_version, records=self._records)
        return self._worker
