"""Run a command as it would run without us, watch it, and say what it died of."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.record.command.launch import given_environment
from oomdoctor.record.watch import AnyLaunched, WatchedRun, WatchOptions, watch


def run(command: Sequence[str], options: WatchOptions, version: str) -> tuple[AnyLaunched, WatchedRun]:
    """Run a command with its own streams and signals, and return what is known of how it ended.

    Raise NotStarted where it cannot be started.
    """
    return watch(command, given_environment(), options, version)
