"""Watch a command from start to end and leave the evidence folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.record.evidence import ENVIRONMENT, LOG, RUN, EvidenceGap, ReceivedSignal, RunRecord, WatchedProcess
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.injection import Injection, discard, inject, unreached
from oomdoctor.record.launch import Launched, NotStarted
from oomdoctor.record.output import Recorded, outputs
from oomdoctor.record.sampling.sampler import SamplerProcess, Summary
from oomdoctor.record.started import copy_configs, interpreter_of, variables

_AFTER = 2.0
"""Seconds in which what outlives the command may end."""
_SUM = 5.0
"""Seconds that the sampler has to say what it saw."""


Describe = Callable[[str | None], bytes]


class WatchOptions(Struct, frozen=True, kw_only=True):
    """How a run is watched."""

    out: str | None = None
    level: int = 1
    log: str | None = None
    attempt: int = 1
    describe: Describe | None = None
    """Describes the machine and an interpreter as JSON; may take seconds."""


class WatchedRun(Struct, frozen=True, kw_only=True):
    """A run that ended."""

    status: int
    """As waitpid gives it."""
    record: RunRecord
    folder: EvidenceFolder
    stopped: bool
    """Whether somebody asked the wrapper to end: what comes now must be quick."""
    near: str | None = None
    """What was used to within three hundredths, though nothing failed."""


def watch(command: Sequence[str], environment: Mapping[str, str], options: WatchOptions, version: str) -> tuple[Launched, WatchedRun]:
    """Run a command, watch it, and return what is known of it. The caller ends as it ended, by `Launched.end`.

    Raise NotStarted where it cannot be started.
    """
    folder = EvidenceFolder(options.out)
    recorded = outputs(options.log)
    injection = inject(folder.path, options.level)
    try:
        launched = Launched(command, environment if injection is None else injection.environment(environment))
    except NotStarted:
        discard(injection)
        folder.remove()
        raise
    try:
        return launched, _watched(
            launched, record_of(command, options, version, launched, recorded), folder, recorded, injection, options.describe
        )
    except Exception as error:  # noqa: BLE001 - whatever fails in us, the command runs to its end and we end as it does
        status = launched.wait()
        folder.gaps.append(EvidenceGap(what="the run", why=f"{type(error).__name__}: {error}"))
        record = replace(record_of((), options, version, launched, recorded), exit_code=_exit_code(status), signal=_signal(status))
        folder.write_json(RUN, replace(record, gaps=tuple(folder.gaps)))
        return launched, WatchedRun(status=status, record=record, folder=folder, stopped=launched.asked_to_end)


def record_of(command: Sequence[str], options: WatchOptions, version: str, launched: Launched, recorded: Recorded) -> RunRecord:
    """Return what is known of a run when it starts."""
    return RunRecord(
        oomdoctor=version,
        command=tuple(_text(word) for word in command),
        cwd=_text(_here()),
        start=round(launched.start, 3),
        level=options.level,
        attempt=options.attempt,
        log=recorded.output,
        variables=variables(os.environ),
    )


def _watched(
    launched: Launched,
    record: RunRecord,
    folder: EvidenceFolder,
    recorded: Recorded,
    injection: Injection | None,
    describe: Describe | None,
) -> WatchedRun:
    """Watch a command that runs, to its end."""
    folder.write_json(RUN, record)
    once = (partial(write_environment, folder, record.command, describe),) if describe is not None else ()
    places = tuple(filter(None, (folder.path or record.cwd, recorded.folder)))
    sampler = SamplerProcess(folder, launched.ours, places, once)
    if sampler.pid is not None:
        launched.ours.add(sampler.pid)
    status = launched.wait()
    end = time.time()
    rest = launched.wait_for_the_rest(_AFTER)
    summary = sampler.finish(_SUM)
    copy_configs(record.command, record.cwd, folder)
    if launched.is_subreaper and not rest:
        discard(injection)
    gaps = [*_log(recorded, folder), *summary.gaps, *unreached(folder.path, summary.processes), *folder.gaps]
    record = _ended(replace(record, gaps=tuple(dict.fromkeys(gaps))), launched, summary, status, end)
    folder.write_json(RUN, record)
    return WatchedRun(status=status, record=record, folder=folder, stopped=launched.asked_to_end, near=summary.near)


def write_environment(folder: EvidenceFolder, command: Sequence[str], describe: Describe) -> None:
    """Write what the machine and the interpreter of a command are, where that is not written yet."""
    if folder.path is not None and not os.path.exists(os.path.join(folder.path, ENVIRONMENT)):
        folder.write(ENVIRONMENT, describe(interpreter_of(command)))


def _text(word: str) -> str:
    """Return a word that JSON can hold, also where it is no text."""
    return word.encode("utf-8", "replace").decode()


def _here() -> str:
    """Return the working directory; nothing where somebody deleted it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _log(recorded: Recorded, folder: EvidenceFolder) -> list[EvidenceGap]:
    """Keep what the command wrote; return what is not known of it."""
    text = recorded.text()
    if text:
        folder.write(LOG, text)
    return [] if text is not None else [recorded.gap()]


def _ended(record: RunRecord, launched: Launched, summary: Summary, status: int, end: float) -> RunRecord:
    """Return the record of a run that ended."""
    how = {ended.pid: ended for ended in launched.ended}
    processes = tuple(
        process
        if (ended := how.get(process.pid)) is None
        else replace(process, end=round(ended.time, 3), exit_code=_exit_code(ended.status), signal=_signal(ended.status))
        for process in _with_command(summary.processes, record, launched)
    )
    received = tuple(
        ReceivedSignal(
            time=round(got.time, 3), signal=got.signal, sender=got.sender, from_terminal=got.from_terminal, forwarded=got.forwarded
        )
        for got in launched.received
    )
    return replace(
        record,
        end=round(end, 3),
        exit_code=_exit_code(status),
        signal=_signal(status),
        processes=processes,
        signals=received,
        survivors=tuple(survivor for survivor in summary.alive if survivor.pid not in how),
        kernel=summary.kernel,
        counters=summary.counters,
        host_oom_kills=summary.host_oom_kills,
        files=summary.files,
    )


def _with_command(seen: tuple[WatchedProcess, ...], record: RunRecord, launched: Launched) -> tuple[WatchedProcess, ...]:
    """Return the processes that were seen; the command itself may have been too quick for that."""
    if any(process.pid == launched.pid for process in seen):
        return seen
    return (WatchedProcess(pid=launched.pid, parent=os.getpid(), command=" ".join(record.command)[:400], start=record.start), *seen)


def _exit_code(status: int) -> int | None:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def _signal(status: int) -> int | None:
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
