"""Watch a command from start to end and leave the evidence folder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from oomdoctor.record.evidence import LOG, RUN, SAMPLES, EvidenceGap, ReceivedSignal, RunRecord, Sample, Survivor, WatchedProcess
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.injection import discard, inject, unreached
from oomdoctor.record.launch import Launched, NotStarted
from oomdoctor.record.output import output_of, output_text
from oomdoctor.record.processes import ProcessTree, command_of
from oomdoctor.record.sampler import Sampler

_WRITE_EVERY = 10
"""Samples that are written together."""
_AFTER = 2.0
"""Seconds in which what outlives the command may end."""


class WatchOptions(Struct, frozen=True, kw_only=True):
    """How a run is watched."""

    out: str | None = None
    level: int = 1
    log: str | None = None
    attempt: int = 1


class WatchedRun(Struct, frozen=True, kw_only=True):
    """A run that ended."""

    status: int
    """As waitpid gives it."""
    record: RunRecord
    folder: str | None
    stopped: bool
    """Whether somebody asked the wrapper to end: what comes now must be quick."""


def watch(command: Sequence[str], environment: Mapping[str, str], options: WatchOptions, version: str) -> tuple[Launched, WatchedRun]:
    """Run a command, watch it, and return what is known of it. The caller ends as it ended, by `Launched.end`.

    Raise NotStarted where it cannot be started.
    """
    log_descriptor = _kept(2 if options.log is None else None)
    output = output_of(2, options.log)
    folder = EvidenceFolder(options.out)
    injection = inject(folder.path, options.level)
    try:
        launched = Launched(command, environment if injection is None else injection.environment(environment))
    except NotStarted:
        discard(injection)
        folder.remove_if_empty()
        raise
    record = RunRecord(
        oomdoctor=version,
        command=tuple(command),
        cwd=os.getcwd(),
        start=launched.start,
        level=options.level,
        attempt=options.attempt,
        log=output,
    )
    folder.write_json(RUN, record)
    tree = ProcessTree(os.getpid(), frozenset({launched.canary}))
    sampler = Sampler(tree, folder.path or os.getcwd())
    lines: list[bytes] = []

    def tick() -> float:
        sample = sampler.sample()
        lines.append(encode(_without_nothing(sample)))
        if len(lines) >= _WRITE_EVERY:
            folder.append(SAMPLES, lines)
            lines.clear()
        return sampler.next_in(sample)

    status = launched.wait(tick)
    end = time.time()
    launched.wait_for_the_rest(_AFTER if _children_are_left() else 0.0)
    folder.append(SAMPLES, lines)
    text = output_text(output, log_descriptor)
    if text:
        folder.write(LOG, text)
    record = _ended(record, launched, tree, status, end, folder.gaps)
    record = replace(record, gaps=(*record.gaps, *unreached(folder.path, record.processes)))
    if launched.is_subreaper and not _children_are_left():
        discard(injection)
    folder.write_json(RUN, record)
    return launched, WatchedRun(status=status, record=record, folder=folder.path, stopped=bool(launched.received))


def _kept(descriptor: int | None) -> int | None:
    """Return a copy of a descriptor, through which a file can be read whose path leads nowhere."""
    try:
        return None if descriptor is None else os.dup(descriptor)
    except OSError:
        return None


def _without_nothing(sample: Sample) -> dict[str, object]:
    """Return a sample without what is not known."""
    plain = {name: getattr(sample, name) for name in sample.__struct_fields__}
    return {name: value for name, value in plain.items() if value not in (None, (), {})}


def _children_are_left() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None or True
    except ChildProcessError:
        return False


def _ended(record: RunRecord, launched: Launched, tree: ProcessTree, status: int, end: float, gaps: Sequence[EvidenceGap]) -> RunRecord:
    """Return the record of a run that ended."""
    how = {ended.pid: ended for ended in launched.ended}
    processes = tuple(
        WatchedProcess(
            pid=process.pid,
            parent=process.parent,
            command=process.command,
            start=round(process.first, 3),
            end=round(ended.time if ended else process.last, 3),
            exit_code=_exit_code(ended.status) if ended else None,
            signal=_signal(ended.status) if ended else None,
            rank=process.rank,
            peak_rss_bytes=process.peak_rss or None,
        )
        for process in sorted(tree.seen.values(), key=lambda process: process.first)
        for ended in (how.get(process.pid),)
    )
    received = tuple(
        ReceivedSignal(
            time=round(got.time, 3), signal=got.signal, sender=got.sender, from_terminal=got.from_terminal, forwarded=got.forwarded
        )
        for got in launched.received
    )
    alive = tuple(Survivor(pid=pid, command=command_of(pid)) for pid in tree.alive() if pid not in how and command_of(pid))
    return RunRecord(
        **{name: getattr(record, name) for name in record.__struct_fields__ if name not in _OF_THE_END},
        end=round(end, 3),
        exit_code=_exit_code(status),
        signal=_signal(status),
        processes=processes,
        signals=received,
        survivors=alive,
        gaps=tuple(gaps),
    )


_OF_THE_END = ("end", "exit_code", "signal", "processes", "signals", "survivors", "gaps")


def _exit_code(status: int) -> int | None:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def _signal(status: int) -> int | None:
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
