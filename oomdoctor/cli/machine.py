"""The machine that a command is asked about: this one, or one that a file describes. Nothing is looked at before it is wanted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from oomdoctor.errors import UsageError

if TYPE_CHECKING:
    from oomdoctor.case.environment import Environment
    from oomdoctor.machine.match_log import MachineSource

_MOST = (4 << 20) + 1
"""Bytes of a file that describes a machine; what reads it takes no larger JSON, and the beginning of longer texts."""


def asked_machine(env: str) -> MachineSource | None:
    """The machine that `--env` names: `auto`, `here`, `none`, or a file."""
    if env == "none":
        return None
    from oomdoctor.machine.match_log import MachineSource  # noqa: PLC0415 - none needs no machine

    if env in ("auto", "here"):
        return MachineSource(_this_machine, always=env == "here")
    data = description(env, "--env")
    return MachineSource(lambda: _read(data, env), name=env, always=True)


def described_machine(path: str) -> Environment:
    """The machine that the file of `--from` describes. Wrong use where it describes none."""
    from oomdoctor.machine.reports.read import describes_nothing  # noqa: PLC0415 - most people ask about this machine

    found = _read(description(path, "--from"), path)
    if describes_nothing(found):
        raise UsageError(f"--from {path}: {found.gaps[0].why}; it takes {found.gaps[0].how}")
    return found


def description(path: str, option: str) -> bytes:
    """The beginning of a file, or of standard input (`-`)."""
    try:
        with click.open_file(path, "rb") as file:
            data: bytes = file.read(_MOST)
            return data
    except (OSError, ValueError) as why:
        raise UsageError(f"{option} {path}: {(getattr(why, 'strerror', None) or str(why)).lower()}") from why


def _read(data: bytes, name: str) -> Environment:
    from oomdoctor.machine.reports.read import read_report  # noqa: PLC0415 - only for a file

    return read_report(data, name)


def _this_machine() -> Environment:
    from oomdoctor.machine.collect.environment import collect_environment  # noqa: PLC0415 - most logs come from elsewhere

    return collect_environment(os.environ)
