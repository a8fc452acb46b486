"""What fixes set, in the keys of each framework: a fix says what, the framework says how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.knowledge.records.fix import FixRecord, SetRecord, SettingRecord
from oomdoctor.knowledge.records.framework import FrameworkRecord, WriteRecord


def with_framework_rows(fix: FixRecord, frameworks: Iterable[FrameworkRecord]) -> FixRecord:
    """Return a fix with a row for each key that a framework writes for it, frameworks that people use most first."""
    by_rank = {record.framework: record for record in sorted(frameworks, key=lambda record: record.rank)}
    special: dict[str, list[SettingRecord]] = {}
    for row in fix.settings:
        special.setdefault(row.framework, []).append(row)
    names = dict.fromkeys([*fix.first, *(name for name in by_rank if fix.sets or name in special), *special])
    rows = [row for name in names for row in _rows(fix.sets, by_rank.get(name), special.get(name, ()))]
    return replace(fix, settings=rows)


def _rows(sets: Sequence[SetRecord], framework: FrameworkRecord | None, special: Sequence[SettingRecord]) -> list[SettingRecord]:
    """Return the rows of one framework: what it writes, then what the fix says of it alone."""
    replaced = {row.sets for row in special}
    written = {
        change.setting: list(_written(change, framework))
        for change in sets
        if framework is not None and change.setting not in replaced and framework.framework not in change.without
    }
    rows = [*(row for rows in written.values() for row in rows), *special]
    # What only goes along does nothing alone.
    return rows if any(not row.along for row in rows) else list(special)


def _written(change: SetRecord, framework: FrameworkRecord) -> Iterator[SettingRecord]:
    for way in _ways(framework, change.setting):
        to = way.values.get(change.to) if way.values else change.to
        if to is None:
            continue
        yield SettingRecord(
            framework=framework.framework,
            key=way.key,
            to=to,
            sets=change.setting,
            means=change.to if way.values else None,
            values={meaning: way.values[meaning] for meaning in change.others if meaning in way.values},
            also=change.also,
            change=change.change,
            least=change.least,
            by=change.by,
            along=change.along,
            facts=change.facts,
            was=change.was,
            default=way.default,
            when=way.when,
            since=way.since,
            until=way.until,
            source=way.source or framework.writes_source,
        )


def _ways(framework: FrameworkRecord, setting: str) -> Sequence[WriteRecord]:
    """Return how a framework writes a setting."""
    writes: Mapping[str, str | WriteRecord | list[WriteRecord]] = framework.writes
    way = writes.get(setting, [])
    return [WriteRecord(key=way)] if isinstance(way, str) else [way] if isinstance(way, WriteRecord) else way
