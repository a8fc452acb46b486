"""Records by job ID, in an indexed file: even a million records need no memory, and each is read from its source only once."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from msgspec.json import decode, encode
from msgspec.structs import replace

from oomdoctor.opening import open_file
from oomdoctor.triage.scheduler.events import MemoryKill, read_kills
from oomdoctor.triage.scheduler.pods import read_pods
from oomdoctor.triage.scheduler.record import JobRecord
from oomdoctor.triage.scheduler.sacct import read_sacct
from oomdoctor.triage.scheduler.slurm_json import read_slurm_json

_LARGEST_LIST = 256 << 20
"""A list of pods in a single object is held whole; lines are not."""
_JOBS = re.compile(rb'"jobs"\s*:\s*\[')
_MOST_KILLS = 100_000
_SOON = 60
"""An event and the end of its pod are at most this many seconds apart."""


class Records:
    """The records written by `keep_records`."""

    def __init__(self, path: str) -> None:
        self._base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def of(self, job: str) -> tuple[JobRecord, ...]:
        """Return the records of a job: one, or one per pod."""
        rows = self._base.execute("SELECT record FROM records WHERE job = ?", (job,))
        return tuple(decode(row[0], type=JobRecord) for row in rows)

    def killed(self) -> Iterator[tuple[JobRecord, ...]]:
        """Yield the records of each job that ran out of host memory."""
        jobs = self._base.execute("SELECT DISTINCT job FROM records WHERE killed ORDER BY job")
        yield from (self.of(job) for (job,) in jobs.fetchall())

    def digest(self, jobs: Iterable[str]) -> str:
        """Return a hash of the records of some jobs; empty if there are none."""
        digest = hashlib.blake2b(digest_size=8)
        told = False
        for job in sorted(set(jobs)):
            for (record,) in self._base.execute("SELECT record FROM records WHERE job = ?", (job,)):
                told = True
                digest.update(record)
        return digest.hexdigest() if told else ""


def keep_records(paths: Sequence[str], path: str) -> list[str]:
    """Write the records in files and folders to `path`, and return what could not be read, one line each."""
    wrong: list[str] = []
    base = sqlite3.connect(path)
    with base:
        base.execute("CREATE TABLE records (job TEXT, uid TEXT, node TEXT, ended INTEGER, killed INTEGER, record BLOB)")
        kills: list[MemoryKill] = []
        for file in _files(paths, wrong):
            before = len(wrong) + len(kills)
            added = base.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", map(_columns, _read(file, wrong, kills)))
            if added.rowcount <= 0 and len(wrong) + len(kills) == before:
                wrong.append(f"{file}: empty: it contains no jobs" if not os.path.getsize(file) else f"{file}: it contains no jobs")
        base.execute("CREATE INDEX by_job ON records (job)")
        base.execute("CREATE INDEX by_uid ON records (uid)")
        base.execute("CREATE INDEX by_end ON records (node, ended)")
        for kill in kills:
            _explain(base, kill)
    base.close()
    return wrong


def _columns(record: JobRecord) -> tuple[str, str | None, str | None, int | None, bool, bytes]:
    node = record.nodes[0] if record.uid is not None and record.nodes else None
    return record.job, record.uid, node, record.ended, record.out_of_memory, encode(record)


def _explain(base: sqlite3.Connection, kill: MemoryKill) -> None:
    """Record that memory ended the pod of an event: the one with its UID, or the one that failed on its node at that time."""
    if kill.uid is not None:
        rows = base.execute("SELECT rowid, record FROM records WHERE uid = ?", (kill.uid,)).fetchall()
    elif kill.node is not None and kill.time is not None:
        span = (kill.node, kill.time - _SOON, kill.time + _SOON)
        rows = base.execute("SELECT rowid, record FROM records WHERE node = ? AND ended BETWEEN ? AND ?", span).fetchall()
    else:
        return
    failed = [(row, record) for row, raw in rows if (record := decode(raw, type=JobRecord)).exit_code]
    if len(failed) == 1 and not failed[0][1].out_of_memory:
        row, record = failed[0]
        base.execute(
            "UPDATE records SET killed = 1, record = ? WHERE rowid = ?", (encode(replace(record, out_of_memory=True, source="event")), row)
        )


def _files(paths: Sequence[str], wrong: list[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            yield from sorted(entry.path for entry in os.scandir(path) if entry.is_file())
        elif os.path.isfile(path):
            yield path
        else:
            wrong.append(f"{path}: no such file")


def _read(path: str, wrong: list[str], kills: list[MemoryKill]) -> Iterator[JobRecord]:
    """Yield the records in a file of any format; kills reported by its events are added to `kills`."""
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8", errors="replace") as file:
            first = file.readline(_LARGEST_LIST)
            file.seek(0)
            if first.lstrip().startswith(("{", "[")):
                yield from _of_objects(path, wrong, kills)
            elif "|" in first:
                yield from read_sacct(file)
            elif first:
                wrong.append(f"{path}: neither sacct --parsable2 nor JSON from Slurm or kubectl")
    except OSError as why:
        wrong.append(f"{path}: {(why.strerror or str(why)).lower()}")


def _of_objects(path: str, wrong: list[str], kills: list[MemoryKill]) -> Iterator[JobRecord]:
    """Yield the records in a file with one object per line, or with one object over many lines."""
    with open_file(path) as file:
        first = file.readline(_LARGEST_LIST)
        is_whole = not first.rstrip().endswith((b"}", b"]"))
        texts = [first + file.read(_LARGEST_LIST)] if is_whole else itertools.chain([first], file)
        broken = 0
        for text in texts:
            records = _of_object(text, kills)
            broken += records is None
            yield from records or ()
    if broken:
        wrong.append(f"{path}: {broken} objects are not JSON from Slurm or kubectl")


def _of_object(text: bytes, kills: list[MemoryKill]) -> list[JobRecord] | None:
    """Return the records in a text; None if it is not such JSON."""
    try:
        if not text.strip():
            return []
        if _JOBS.search(text):
            return list(read_slurm_json(text))
        if b'"Event"' in text:
            kills += read_kills(text)[: _MOST_KILLS - len(kills)]
        return list(read_pods(text))
    except ValueError:
        return None
