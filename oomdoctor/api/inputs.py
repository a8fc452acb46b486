"""The inputs of a use case: paths, logs, the text of a file, the machine of a run. Wrong use is reported here, as a UsageError."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Union

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.environment import Environment
from oomdoctor.case.gap import Gap
from oomdoctor.errors import UsageError
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.opening import open_file_or_pipe

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
Machine = Union[Environment, Path, None]
"""A machine, a file that describes one, `auto` (this one if it matches the log), `here` (this one), or None."""

CONFIG_ENDINGS = (
    ".yaml", ".yml", ".json", ".toml", ".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".bat", ".cmd", ".ps1", ".py", ".ipynb", "modelfile",
)  # fmt: skip
"""File name extensions of configs; of several files, the others are logs."""
_MOST = (4 << 20) + 1
"""Bytes read from a machine description; its reader accepts no larger JSON, and only the beginning of longer texts."""
_NAME = "<environment>"
_GAPS = 8


def path_list(paths: Paths) -> list[str]:
    """Return one path or several as a list of strings."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def path_text(path: Path | None) -> str | None:
    """Return a path as a string; None stays None."""
    return None if path is None else os.fspath(path)


def default_jobs() -> int:
    """Return the default number of threads that read logs: the number of CPUs, at most 4."""
    return min(4, os.cpu_count() or 1)


def read_beginning(path: str, option: str) -> bytes:
    """Read the first 4 MiB of a file, or of standard input (`-`). Raise UsageError naming `option` if that fails."""
    try:
        if path == "-":
            return sys.stdin.buffer.read(_MOST)
        with open_file_or_pipe(path) as file:
            return file.read(_MOST)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {path}: {(getattr(error, 'strerror', None) or str(error)).lower()}") from error


def machine_source(machine: Machine) -> MachineSource | None:
    """Return the source of a run's machine; it is examined, or its file parsed, only when a log needs it."""
    if machine is None:
        return None
    if isinstance(machine, Environment):
        return MachineSource(lambda: machine, name=_NAME, always=True)
    path = os.fspath(machine)
    if path in ("auto", "here"):
        return MachineSource(_this_machine, always=path == "here")
    data = read_beginning(path, "--env")
    return MachineSource(lambda: _described(data, path), name=path, always=True)


def unread_lines(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return why nothing could be read, one line per input; empty if something was read."""
    case = diagnosis.case
    if any(source.size for source in case.sources):
        return ()
    empty = tuple(f"{source.name}: empty" for source in case.sources[:_GAPS] if source.complete)
    return (*map(_gap_line, case.gaps[:_GAPS]), *empty) or ("no log was found there",)


def partly_unread_lines(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return which inputs could not be read completely, and why, one line each."""
    lines = tuple(_gap_line(gap) for gap in diagnosis.case.gaps if gap.what in diagnosis.case.not_read)
    return lines if len(lines) <= _GAPS else (*lines[:_GAPS], f"and {len(lines) - _GAPS} more that could not be read")


def _gap_line(gap: Gap) -> str:
    return f"{gap.what}: {gap.why}" + (f" ({gap.how})" if gap.how else "")


def _this_machine() -> Environment:
    from oomdoctor.machine.collect.environment import collect_environment  # noqa: PLC0415 - most logs come from another machine

    return collect_environment(os.environ)


def _described(data: bytes, name: str) -> Environment:
    from oomdoctor.machine.reports.read import read_report  # noqa: PLC0415 - few logs come with a description of their machine

    return read_report(data, name)
