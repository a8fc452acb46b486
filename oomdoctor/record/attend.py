"""What is done while a watched command already runs, and when it has ended: samples, what was started, the record."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from oomdoctor.record.command.signals import end_signal, exit_code
from oomdoctor.record.evidence import ENVIRONMENT, LOG, OUTPUT, RUN, EvidenceGap, Output, ReceivedSignal, RunRecord, WatchedProcess
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.injection import discard
from oomdoctor.record.limits import limits
from oomdoctor.record.output import Recorded
from oomdoctor.record.redacting import redact_bytes, redact_exceptions
from oomdoctor.record.sampling.sampler_process import SamplerProcess, Summary
from oomdoctor.record.started import copy_configs, interpreter_of, variables
from oomdoctor.record.unreached import unreached
from oomdoctor.redaction.redact_secrets import redact_secrets_in

if TYPE_CHECKING:
    from oomdoctor.record.command.launch import Launched
    from oomdoctor.record.command.plain import PlainLaunched
    from oomdoctor.record.options import Prepared, WatchOptions

_AFTER = 2.0
"""Seconds in which what outlives the command may end."""
_SUM = 5.0
"""Seconds that the sampler has to say what it saw."""
_NO_LOG = {"terminal": "it went to the terminal", "pipe": "it went through a pipe", "closed": "its output was closed"}
Describe = Callable[[str | None], bytes]


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


def attend(
    launched: Launched | PlainLaunched,
    command: Sequence[str],
    options: WatchOptions,
    prepared: Prepared,
) -> WatchedRun:
    """Watch a command that runs, to its end, and return what is known of it."""
    folder = EvidenceFolder(prepared.place)
    recorded = prepared.recorded
    try:
        record = replace(_record(command, options, launched, recorded), rank=prepared.rank)
        status, record, near = _attended(launched, record, folder, prepared, options.describe)
    except Exception as error:  # noqa: BLE001 - whatever fails in us, the command runs to its end, and what is known is kept
        status, near = launched.wait(), None
        folder.gaps.append(EvidenceGap(what="the run", why=f"{type(error).__name__}: {error}"))
        record = replace(_record((), options, launched, recorded), exit_code=exit_code(status), signal=end_signal(status))
        folder.give_room()
        write_record(folder, replace(record, gaps=tuple(folder.gaps)))
    return WatchedRun(status=status, record=record, folder=folder, stopped=launched.asked_to_end, near=near)


def _record(command: Sequence[str], options: WatchOptions, launched: Launched | PlainLaunched, recorded: Recorded) -> RunRecord:
    """Return what is known of a run when it starts."""
    output = recorded.output
    return RunRecord(
        oomdoctor=options.version,
        command=tuple(_text(word) for word in command),
        cwd=_text(_here()),
        start=round(launched.start, 3),
        level=options.level,
        attempt=options.attempt,
        log=Output(kind=output.kind, path=output.path, start_offset=output.start_offset),
    )


def _text(word: str) -> str:
    """Return a word that JSON can hold, also where it is no text."""
    return word.encode("utf-8", "replace").decode()


def _here() -> str:
    """Return the working directory; nothing where somebody deleted it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _attended(
    launched: Launched | PlainLaunched,
    record: RunRecord,
    folder: EvidenceFolder,
    prepared: Prepared,
    describe: Describe | None,
) -> tuple[int, RunRecord, str | None]:
    """Return the status of a command that ended, the record, and what was nearly full."""
    record = replace(record, variables=variables(os.environ), limits=limits())
    write_record(folder, record)
    folder.keep_room()
    once = (partial(write_environment, folder, record.command, describe),) if describe is not None else ()
    sampler = SamplerProcess(folder, launched.ours, _disks(folder.path, record.cwd, prepared.recorded.folder), prepared.before, once)
    if sampler.pid is not None:
        launched.ours.add(sampler.pid)
    copy_configs(record.command, record.cwd, folder)
    status = launched.wait()
    rest = launched.wait_for_the_rest(_AFTER)
    summary = sampler.finish(_SUM)
    if launched.is_subreaper and not rest:
        discard(prepared.injection)
    redact_exceptions(folder)
    gaps = [*_log(prepared.recorded, folder), *summary.gaps, *unreached(folder.path, summary.processes), *folder.gaps]
    record = _ended(replace(record, gaps=tuple(dict.fromkeys(gaps))), launched, summary, status)
    folder.give_room()
    if not write_record(folder, record) and folder.move():
        _log(prepared.recorded, folder)
        write_record(folder, record)
    return status, record, summary.near


def _disks(*places: str | None) -> tuple[str, ...]:
    """Return one place of each file system that any of these lie on."""
    disks: dict[int, str] = {}
    for place in filter(None, places):
        with suppress(OSError):
            disks.setdefault(os.stat(place).st_dev, place)
    return tuple(disks.values())


def write_record(folder: EvidenceFolder, record: RunRecord) -> bool:
    """Write what is known of a run, without the secrets that command lines and variables hold; return whether it is there."""
    return folder.write_json(RUN, redact_secrets_in(to_builtins(record)))


def write_environment(folder: EvidenceFolder, command: Sequence[str], describe: Describe) -> None:
    """Write what the machine and the interpreter of a command are, where that is not written yet."""
    if folder.path is not None and not os.path.exists(os.path.join(folder.path, ENVIRONMENT)):
        folder.write(ENVIRONMENT, describe(interpreter_of(command)))


def _log(recorded: Recorded, folder: EvidenceFolder) -> list[EvidenceGap]:
    """Keep what the command wrote; return what is not known of it."""
    text = recorded.text()
    if text:
        folder.write(LOG, redact_bytes(text))
    if text is not None:
        return []
    kind = recorded.output.kind
    how = "oomdoctor run -- COMMAND > FILE 2>&1" if kind == "terminal" else "oomdoctor run --log FILE -- COMMAND"
    return [EvidenceGap(what=OUTPUT, why=_NO_LOG.get(kind, "it cannot be read again"), how=how)]


def _ended(record: RunRecord, launched: Launched | PlainLaunched, summary: Summary, status: int) -> RunRecord:
    """Return the record of a run that ended."""
    how = {ended.pid: ended for ended in launched.ended}
    processes = tuple(
        process
        if (ended := how.get(process.pid)) is None
        else replace(process, end=round(ended.time, 3), exit_code=exit_code(ended.status), signal=end_signal(ended.status))
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
        end=round(how[launched.pid].time, 3),
        exit_code=exit_code(status),
        signal=end_signal(status),
        processes=processes,
        signals=received,
        survivors=tuple(survivor for survivor in summary.alive if survivor.pid not in how),
        kernel=summary.kernel,
        counters=summary.counters,
        host_oom_kills=summary.host_oom_kills,
        has_machine_pids=summary.has_machine_pids,
        files=summary.files,
    )


def _with_command(seen: tuple[WatchedProcess, ...], record: RunRecord, launched: Launched | PlainLaunched) -> tuple[WatchedProcess, ...]:
    """Return the processes that were seen; the command itself may have been too quick for that."""
    if any(process.pid == launched.pid for process in seen):
        return seen
    return (WatchedProcess(pid=launched.pid, parent=os.getpid(), command=" ".join(record.command)[:400], start=record.start), *seen)
