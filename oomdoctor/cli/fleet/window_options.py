"""`--since`, `--until` and `--day`: of which time the jobs count, the same in each command over a triage."""

from __future__ import annotations

import time
from functools import wraps
from typing import Any

import click

from oomdoctor.cli.options import Command
from oomdoctor.triage.window import window_of

_SINCE = click.option("--since", metavar="WHEN", help="Count only jobs that ended since then: 24h, 7d, or a time (2026-11-22, UTC).")
_UNTIL = click.option("--until", metavar="WHEN", help="Count only jobs that ended before then; same format.")
_DAY = click.option("--day", metavar="YYYY-MM-DD", help="Count only jobs that ended on that day (UTC).")


def window_options(command: Command) -> Command:
    """Give a command the three options, and hand it the `window` that they mean."""

    @wraps(command)
    def with_window(*args: Any, since: str | None, until: str | None, day: str | None, **options: Any) -> Any:
        return command(*args, window=window_of(since, until, day, time.time()), **options)

    return _SINCE(_UNTIL(_DAY(with_window)))  # type: ignore[return-value]  # wraps keeps what it is
