"""Jobs that ran out of memory according to the scheduler: one row each, kept in a separate part.

Where a log of the job is at hand, its row takes the place of this one when rows are read (same_jobs.py): a log that is found later, by
another shard or in another store, needs nothing done here.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw
from msgspec.json import encode

from oomdoctor.triage.scheduler.records import Records
from oomdoctor.triage.store.identity import names_of_record
from oomdoctor.triage.store.part_family import PartFamily
from oomdoctor.triage.store.parts import UNLOGGED, Basis, Parts
from oomdoctor.triage.work import row_of_record


def keep_unlogged(parts: Parts, records: Records, *, tool: str, rules: str) -> None:
    """Write the rows for some records, along with those kept from earlier records."""
    kept = parts.read(UNLOGGED)
    families = {} if kept is None else dict(kept.families)
    for family in _families(records, tool, rules):
        families[family.family] = family
    if families:
        parts.write(UNLOGGED, Basis("", rules), [families[name] for name in sorted(families)])


def _families(records: Records, tool: str, rules: str) -> Iterator[PartFamily]:
    for told in records.killed():
        row = row_of_record(told, tool=tool, rules=rules)
        yield PartFamily(row.job, "", [Raw(encode(row))], [names_of_record(told[0].job)])
