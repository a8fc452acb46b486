"""Records by the id of their job, in a file with an index: a million of them take no memory, and each is read from its source once."""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from msgspec.json import decode, encode

from oomdoctor.triage.scheduler.pods import read_pods
from oomdoctor.triage.scheduler.record import JobRecord
from oomdoctor.triage.scheduler.sacct import read_sacct

_LARGEST_LIST = 256 << 20
"""A list of pods in one object is held whole; lines are not."""


class Records:
    """What `keep_records` wrote."""

    def __init__(self, path: str) -> None:
        self._base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def of(self, job: str) -> tuple[JobRecord, ...]:
        """Return what is known of a job: one record, or one for each of its pods."""
        rows = self._base.execute("SELECT record FROM records WHERE job = ?", (job,))
        return tuple(decode(row[0], type=JobRecord) for row in rows)

    def digest(self, jobs: Iterable[str]) -> str:
        """Return a hash of what is known of some jobs; empty where nothing is."""
        digest = hashlib.blake2b(digest_size=8)
        told = False
        for job in sorted(set(jobs)):
            for (record,) in self._base.execute("SELECT record FROM records WHERE job = ?", (job,)):
                told = True
                digest.update(record)
        return digest.hexdigest() if told else ""


def keep_records(paths: Sequence[str], path: str) -> list[str]:
    """Write the records in files and folders to `path`, and return what could not be read, a line each."""
    wrong: list[str] = []
    base = sqlite3.connect(path)
    with base:
        base.execute("CREATE TABLE records (job TEXT, record BLOB)")
        for file in _files(paths, wrong):
            base.executemany("INSERT INTO records VALUES (?, ?)", ((record.job, encode(record)) for record in _read(file, wrong)))
        base.execute("CREATE INDEX by_job ON records (job)")
    base.close()
    return wrong


def _files(paths: Sequence[str], wrong: list[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            yield from sorted(entry.path for entry in os.scandir(path) if entry.is_file())
        elif os.path.isfile(path):
            yield path
        else:
            wrong.append(f"{path}: no such file")


def _read(path: str, wrong: list[str]) -> Iterator[JobRecord]:
    """Yield the records of a file, whichever form it has."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first = file.readline(_LARGEST_LIST)
            file.seek(0)
            if first.lstrip().startswith(("{", "[")):
                yield from _of_objects(path, wrong)
            elif "|" in first:
                yield from read_sacct(file)
            elif first:
                wrong.append(f"{path}: neither sacct --parsable2 nor JSON of kubectl")
    except OSError as why:
        wrong.append(f"{path}: {(why.strerror or str(why)).lower()}")


def _of_objects(path: str, wrong: list[str]) -> Iterator[JobRecord]:
    """Yield the pods of a file with an object a line, or with one object over many lines."""
    with open(path, "rb") as file:
        first = file.readline(_LARGEST_LIST)
        is_whole = not first.rstrip().endswith((b"}", b"]"))
        texts = [first + file.read(_LARGEST_LIST)] if is_whole else itertools.chain([first], file)
        broken = 0
        for text in texts:
            pods = _pods(text)
            broken += pods is None
            yield from pods or ()
    if broken:
        wrong.append(f"{path}: {broken} objects are no JSON of kubectl")


def _pods(text: bytes) -> list[JobRecord] | None:
    """Return the pods in a text; None where it is no JSON of kubectl."""
    try:
        return list(read_pods(text)) if text.strip() else []
    except ValueError:
        return None
