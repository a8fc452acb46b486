"""Read an evidence folder that nobody vouches for: bounded, nothing executed, and whatever is damaged left out and named."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct, ValidationError
from msgspec.json import decode

from oomdoctor.opening import open_descriptor
from oomdoctor.record.evidence import (
    CONFIGS,
    ENVIRONMENT,
    LOG,
    RUN,
    SAMPLES,
    EvidenceGap,
    Hello,
    OrderlyEnd,
    PhasePeak,
    RecordedException,
    RefusedRequest,
    RunRecord,
    Sample,
    ToldPhases,
)
from oomdoctor.record.evidence_place import RANKS, TENSORFLOW
from oomdoctor.record.ring import Ring, read_ring

T = TypeVar("T", bound=Struct)

_KEY = re.compile(
    r"(?:rank-(?P<rank>\d{1,7})\.)?pid-(?P<pid>\d{1,10})\."
    r"(?P<what>hello\.json|ring|oom-\d\.json|oom-\d\.pickle|exception\.json|phases\.json|end\.json)$"
)
_MOST_JSON, _MOST_RING, _MOST_SAMPLES = 8 << 20, 4 << 20, 32 << 20
_ALL_RINGS = 32 << 20
"""Bytes of rings that are read; those of a job take 20 MiB at most."""
_MOST_FILES = 20_000
_MOST_PHASES = 50
_JUST = 15.0
"""Seconds; samples are written every five."""
_MOST_CONFIGS, _MOST_CONFIG = 200, 2 << 20


class RankEvidence(Struct, kw_only=True):
    """What the recorder in one process left."""

    pid: int
    rank: int | None = None
    hello: Hello | None = None
    ring: Ring | None = None
    ooms: list[RefusedRequest]
    snapshots: list[str]
    """Paths of memory snapshots."""
    exception: RecordedException | None = None
    phases: tuple[PhasePeak, ...] = ()
    end: OrderlyEnd | None = None


class RunEvidence(Struct, frozen=True, kw_only=True):
    """What a folder holds."""

    path: str
    run: RunRecord | None
    samples: tuple[Sample, ...]
    ranks: tuple[RankEvidence, ...]
    log: str | None
    environment: str | None
    configs: tuple[str, ...]
    gaps: tuple[EvidenceGap, ...]
    is_going: bool = False
    """Whether the run may still be at work: it has no end, and its last sample was taken just now. A copy is as old as what it holds."""


def read_evidence(path: str) -> RunEvidence:
    """Return what a folder holds."""
    gaps: list[EvidenceGap] = []
    run = _json(os.path.join(path, RUN), RunRecord, gaps)
    samples = tuple(_samples(os.path.join(path, SAMPLES), gaps))
    return RunEvidence(
        path=path,
        run=run,
        samples=samples,
        ranks=tuple(_ranks(path, gaps)),
        log=_present(path, LOG),
        environment=_present(path, ENVIRONMENT),
        configs=tuple(_configs(os.path.join(path, CONFIGS))),
        gaps=(*gaps, *(run.gaps if run is not None else ())),
        is_going=run is not None and run.end is None and bool(samples) and abs(time.time() - samples[-1].t) < _JUST,
    )


def _configs(folder: str) -> Iterator[str]:
    """Yield the plain files of a folder that are no larger than a copied config."""
    for name in _names(folder)[:_MOST_CONFIGS]:
        path = os.path.join(folder, name)
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_CONFIG:
            yield path


def _ranks(path: str, gaps: list[EvidenceGap]) -> list[RankEvidence]:
    """Return what each process left, by rank."""
    folder = os.path.join(path, RANKS)
    out: dict[int, RankEvidence] = {}
    rings, left_out = 0, 0
    for name in _names(folder):
        key = _KEY.search(name)
        if key is None:
            gaps += _of_other_programs(os.path.join(folder, name))
            continue
        if key["what"] == "ring":
            rings += size_of(os.path.join(folder, name))
            if rings > _ALL_RINGS:
                left_out += 1
                continue
        pid = int(key["pid"])
        rank = out.setdefault(pid, RankEvidence(pid=pid, ooms=[], snapshots=[]))
        rank.rank = int(key["rank"]) if key["rank"] else rank.rank
        _add(rank, key["what"], os.path.join(folder, name), gaps)
    if left_out:
        gaps.append(EvidenceGap(what=f"{left_out} rings of counters", why=f"together they exceed {_ALL_RINGS >> 20} MiB"))
    return sorted(out.values(), key=lambda rank: (rank.rank is None, rank.rank or 0, rank.pid))


def size_of(path: str) -> int:
    """Return the size of a file, 0 where it cannot be told."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _of_other_programs(path: str) -> Iterator[EvidenceGap]:
    """Yield that a dump is not read that a program wrote itself, as record/injection.py asks it to."""
    name = os.path.basename(path)
    if name.endswith((".pickle", ".pkl")):
        yield EvidenceGap(what=path, why="torch_npu wrote it; it is not merged with the run", how=f"oomdoctor snapshot {name}")
    elif name.startswith(TENSORFLOW):
        yield EvidenceGap(what=path, why="TensorFlow's own dump of its allocator is not read")


def _add(rank: RankEvidence, what: str, path: str, gaps: list[EvidenceGap]) -> None:
    if what == "hello.json":
        rank.hello = _json(path, Hello, gaps)
    elif what == "exception.json":
        rank.exception = _json(path, RecordedException, gaps)
    elif what == "phases.json":
        told = _json(path, ToldPhases, gaps)
        rank.phases = () if told is None else told.phases[:_MOST_PHASES]
    elif what == "end.json":
        rank.end = _json(path, OrderlyEnd, gaps)
    elif what.endswith(".pickle"):
        rank.snapshots.append(path)
    elif what == "ring":
        data = _bytes(path, _MOST_RING, gaps)
        rank.ring = None if data is None else read_ring(data)
        if data and rank.ring is None:
            gaps.append(EvidenceGap(what=path, why="it is not a ring of counters"))
    else:
        refused = _json(path, RefusedRequest, gaps)
        if refused is not None:
            rank.ooms.append(refused)


def _samples(path: str, gaps: list[EvidenceGap]) -> Iterator[Sample]:
    """Yield the lines that can be read; the last may be cut."""
    lines = (_bytes(path, _MOST_SAMPLES, gaps) or b"").splitlines()
    yield from (sample for line in lines if (sample := _sample(line)) is not None)


def _sample(line: bytes) -> Sample | None:
    try:
        return decode(line, type=Sample)
    except (ValidationError, ValueError):
        return None


def _json(path: str, kind: type[T], gaps: list[EvidenceGap]) -> T | None:
    data = _bytes(path, _MOST_JSON, gaps)
    if data is None:
        return None
    try:
        return decode(data, type=kind)
    except (ValidationError, ValueError, RecursionError) as error:
        gaps.append(EvidenceGap(what=path, why=str(error)))
        return None


def _bytes(path: str, most: int, gaps: list[EvidenceGap]) -> bytes | None:
    """Return a file of the folder; None where there is none. A link out of the folder is not followed."""
    try:
        handle = open_descriptor(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        gaps.append(EvidenceGap(what=path, why=error.strerror or str(error)))
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        gaps.append(EvidenceGap(what=path, why="it is not a regular file"))
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(most)


def _present(path: str, name: str) -> str | None:
    target = os.path.join(path, name)
    return target if os.path.isfile(target) and not os.path.islink(target) else None


def _names(path: str) -> list[str]:
    """Return the names in a folder; none where it is a link, which may lead anywhere."""
    try:
        return [] if os.path.islink(path) else sorted(os.listdir(path))[:_MOST_FILES]
    except OSError:
        return []
