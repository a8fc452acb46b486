"""Start a command that is watched: what is ready before it runs, as little as can be."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Union

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.record.command.launch import Launched, NotStarted
from oomdoctor.record.command.signals import HAS_WAITING, end_signal, exit_code
from oomdoctor.record.evidence import RUN, EvidenceGap, RunRecord
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.injection import discard, inject
from oomdoctor.record.output import Recorded, outputs

if TYPE_CHECKING:
    from oomdoctor.record.command.plain import PlainLaunched

AnyLaunched = Union[Launched, "PlainLaunched"]


class WatchOptions(Struct, frozen=True, kw_only=True):
    """How a run is watched."""

    out: str | None = None
    level: int = 1
    log: str | None = None
    attempt: int = 1
    retries: int = 0
    """How often a run that failed may be tried again."""
    describe: Callable[[str | None], bytes] | None = None
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


def watch(command: Sequence[str], environment: Mapping[str, str], options: WatchOptions, version: str) -> tuple[AnyLaunched, WatchedRun]:
    """Run a command, watch it, and return what is known of it. The caller ends as it ended, by `Launched.end`.

    Raise NotStarted where it cannot be started.
    """
    folder = EvidenceFolder(options.out)
    recorded = outputs(options.log)
    injection = inject(folder.path, options.level)
    try:
        environment = environment if injection is None else injection.environment(environment)
        launched = _launched(command, environment, again=options.retries > 0)
    except NotStarted:
        discard(injection)
        folder.remove()
        raise
    try:
        from oomdoctor.record.attend import attend  # noqa: PLC0415 - loaded while the command already runs

        record = record_of(command, options, version, launched, recorded)
        status, record, near = attend(launched, record, folder, recorded, injection, options.describe)
    except Exception as error:  # noqa: BLE001 - whatever fails in us, the command runs to its end and we end as it does
        status, near = launched.wait(), None
        folder.gaps.append(EvidenceGap(what="the run", why=f"{type(error).__name__}: {error}"))
        record = replace(record_of((), options, version, launched, recorded), exit_code=exit_code(status), signal=end_signal(status))
        folder.write_json(RUN, replace(record, gaps=tuple(folder.gaps)))
    return launched, WatchedRun(status=status, record=record, folder=folder, stopped=launched.asked_to_end, near=near)


def _launched(command: Sequence[str], environment: Mapping[str, str], *, again: bool) -> AnyLaunched:
    """Start a command; where signals cannot be waited for, handlers pass them on."""
    if HAS_WAITING:
        return Launched(command, environment, again=again)
    from oomdoctor.record.command.plain import PlainLaunched  # noqa: PLC0415 - macOS and Windows alone need it

    return PlainLaunched(command, environment)


def record_of(command: Sequence[str], options: WatchOptions, version: str, launched: AnyLaunched, recorded: Recorded) -> RunRecord:
    """Return what is known of a run when it starts."""
    return RunRecord(
        oomdoctor=version,
        command=tuple(_text(word) for word in command),
        cwd=_text(_here()),
        start=round(launched.start, 3),
        level=options.level,
        attempt=options.attempt,
        log=recorded.output,
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
