"""Run a command as it would run without us, watch it, and report what it died of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oomdoctor.record.command.launch import given_environment
from oomdoctor.record.options import WatchOptions
from oomdoctor.record.watch import AnyLaunched, watch

if TYPE_CHECKING:
    from oomdoctor.record.attend import WatchedRun


def run(command: Sequence[str], options: WatchOptions) -> tuple[AnyLaunched, WatchedRun | None]:
    """Run a command with its own streams and signals, and return what is known about how it ended, if anything.

    Raise NotStarted if it cannot be started.
    """
    return watch(command, given_environment(), options)
