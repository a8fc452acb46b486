"""What an evidence folder states, a line each, in the form that rules/signatures/watched-run.yaml reads.

So evidence takes the way of every log: lines become events, events incidents, and rules judge them, with examples that a person can read.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

from oomdoctor.record.evidence import CgroupCounters, FileSystem, RefusedRequest, RunRecord, Sample
from oomdoctor.record.read_folder import Evidence, RankEvidence

_PREFIX = "oomdoctor run: "
_FULL = 0.02
"""A file system of which less than this share was left was full for whoever wrote to it."""
_NEAR = 0.98
"""A control group that came this near to its limit reached it."""
_POLITE = (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM))
_BUS = getattr(signal, "SIGBUS", 7)


def texts(evidence: Evidence) -> list[tuple[str, bytes]]:
    """Return the texts of a folder that are read like logs, each with the name of its file, in the order of what happened."""
    out = []
    for rank in evidence.ranks:
        key = f"ranks/{'' if rank.rank is None else f'rank-{rank.rank}.'}pid-{rank.pid}"
        for number, refused in enumerate(rank.ooms, 1):
            out.append((f"{key}.oom-{number}.json", "\n".join(_refused(rank, refused))))
        if rank.exception is not None:
            out.append((f"{key}.exception.json", rank.exception.traceback or f"{rank.exception.type}: {rank.exception.text}"))
    if evidence.run is not None:
        out.append(("run.json", "\n".join(_run(evidence, evidence.run))))
    elif evidence.ranks:
        out.append(("ranks", "\n".join(_left(evidence))))
    return [(name, (text + "\n").encode("utf-8", "replace")) for name, text in out if text]


def _refused(rank: RankEvidence, refused: RefusedRequest) -> Iterator[str]:
    """Yield what a failed request of the allocator says: in torch's own numbers, so that the same rules judge it."""
    stats = refused.stats
    allocated, reserved = _stat(stats, "allocated_bytes"), _stat(stats, "reserved_bytes")
    figures = [
        ("asked of the driver", refused.driver_request_bytes),
        ("at most", refused.total_bytes),
        ("free", refused.free_bytes),
        ("allocated", allocated),
        ("reserved", reserved),
    ]
    told = ", ".join(f"{name} {size} bytes" for name, size in figures if size is not None)
    where = "" if rank.rank is None else f"[rank{rank.rank}]: "
    ended = rank.end is not None and rank.exception is None
    what = "refused a request and the program went on" if ended else "refused a request"
    yield f"{where}{_PREFIX}the allocator of device {refused.device or 0} {what}: {told}"


def _run(evidence: Evidence, run: RunRecord) -> Iterator[str]:
    """Yield how the command and its processes ended, and what ran out beside them."""
    if run.end is None:
        yield f"{_PREFIX}nothing was written after the start: the wrapper was ended, too"
    failed = run.signal is not None or bool(run.exit_code)
    killed = [process for process in run.processes if process.signal == signal.SIGKILL]
    kills = _kills(run.counters, evidence.samples)
    if kills:
        yield from _killed_by_limit(run, kills, evidence.samples)
    shm = _full(run.files, "/dev/shm")  # noqa: S108 - a name in a record
    if shm is not None and failed:
        yield f"{_PREFIX}/dev/shm was full: {shm.least_free_bytes} of {shm.total_bytes} bytes were left"
    for full in run.files:
        if failed and full.path != "/dev/shm" and _is_full(full):  # noqa: S108 - as above
            yield f"{_PREFIX}the disk of {full.path} was full: {full.least_free_bytes} of {full.total_bytes} bytes were left"
    yield from _ended_from_outside(run, [process.pid for process in killed], kills)
    yield from run.kernel
    if failed and run.signal is None and not kills and not _explained(evidence):
        yield f"{_PREFIX}the command ended by itself with status {run.exit_code}; {_room(evidence.samples)}"


def _ended_from_outside(run: RunRecord, killed: Sequence[int], kills: int | None) -> Iterator[str]:
    """Yield signals that ended the command: whose they were, and whether the kernel counted a kill for memory."""
    for received in run.signals:
        if received.signal in _POLITE:
            who = "the terminal" if received.from_terminal else f"process {received.sender}"
            yield f"{_PREFIX}{signal.Signals(received.signal).name} of {who} stopped the command"
    if kills == 0 and (killed or run.signal == signal.SIGKILL):
        whom = f"process {', '.join(map(str, killed))}" if killed else "the command"
        yield f"{_PREFIX}SIGKILL ended {whom}, and the kernel counted no kill for memory in that time"
    if run.signal == _BUS:
        yield f"{_PREFIX}SIGBUS ended the command"


def _killed_by_limit(run: RunRecord, kills: int, samples: Sequence[Sample]) -> Iterator[str]:
    counters = run.counters
    limit = counters.limit_bytes if counters is not None else None
    peak = counters.peak_bytes if counters is not None else None
    if peak is None:
        peak = max((sample.cgroup.current or 0 for sample in samples if sample.cgroup is not None), default=None) or None
    if limit is not None and (peak is None or peak >= _NEAR * limit):
        told = "" if peak is None else f", at most {peak} bytes used"
        yield f"{_PREFIX}the kernel killed {kills} processes for the limit of the control group, {limit} bytes{told}"
    else:
        left = min((sample.available for sample in samples if sample.available is not None), default=None)
        told = "" if left is None else f"; the least that was available were {left} bytes"
        yield f"{_PREFIX}the kernel killed {kills} processes because the machine had no memory left{told}"


def _kills(counters: CgroupCounters | None, samples: Sequence[Sample]) -> int | None:
    """Return how many processes the kernel killed for memory in the time of the run; None where nothing counted."""
    if counters is not None and counters.oom_kill is not None:
        return counters.oom_kill
    counted = [sample.cgroup.oom_kill for sample in samples if sample.cgroup is not None and sample.cgroup.oom_kill is not None]
    return counted[-1] - counted[0] if counted else None


def _left(evidence: Evidence) -> Iterator[str]:
    """Yield what is left of a run whose node died."""
    yield f"{_PREFIX}only what {len(evidence.ranks)} processes counted is left: neither the wrapper nor they saw the end"


def _explained(evidence: Evidence) -> bool:
    """Return whether Python or the allocator saw why a process ended."""
    return any(rank.exception is not None or rank.ooms for rank in evidence.ranks)


def _room(samples: Sequence[Sample]) -> str:
    """Say how much of the host was left at the worst moment."""
    least = min(((sample.available, sample.total) for sample in samples if sample.available and sample.total), default=None)
    return "how much memory was left is not known" if least is None else f"{least[0]} of {least[1]} bytes were available at the least"


def _full(files: Sequence[FileSystem], path: str) -> FileSystem | None:
    return next((file for file in files if file.path == path and _is_full(file)), None)


def _is_full(files: FileSystem) -> bool:
    return files.total_bytes is not None and files.least_free_bytes is not None and files.least_free_bytes < _FULL * files.total_bytes


def _stat(stats: dict[str, object], name: str) -> int | None:
    """Return a current figure of the allocator's raw counters: `{name: {all: {current: ...}}}`, or flattened as memory_stats gives it."""
    value: object = stats.get(name)
    for key in ("all", "current"):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        value = stats.get(f"{name}.all.current")
    return value if isinstance(value, int) else None
