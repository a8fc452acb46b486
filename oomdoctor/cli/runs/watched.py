"""Run a command and end as it did: what `oomdoctor run` does once its options are known."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from oomdoctor import __version__
from oomdoctor.api.runs.run import run
from oomdoctor.cli.runs.run_options import RunOptions
from oomdoctor.record.command.launch import NotStarted
from oomdoctor.record.options import WatchOptions


def run_watched(given: RunOptions) -> NoReturn:
    """Run the command, say what it died of, and end this process as it ended."""
    options = WatchOptions(
        __version__,
        out=given.out,
        level=given.level,
        log=given.log,
        attempt=given.attempt,
        retries=given.retry,
        describe=lambda python: _end().describe(python),
    )
    try:
        launched, watched = run(given.command, options)
    except NotStarted as error:
        _say(str(error))
        sys.exit(error.status)
    with suppress(Exception):  # whatever fails in us, we end as the command did
        if watched is not None:
            keep = given.out is not None
            _end().last_words(launched, watched, keep=keep, quiet=given.quiet, say=_say, retries=given.retry, allowed=given.allow)
            _end().try_again(launched, watched, _of_each_attempt(given), given.retry)
    launched.end(launched.wait())


def _of_each_attempt(given: RunOptions) -> list[str]:
    """Return the options of an attempt that the next one has, too."""
    allowed = [word for name in given.allow for word in ("--allow", name)]
    return ["--level", str(given.level), *(["--log", given.log] if given.log else []), *allowed, *(["--quiet"] if given.quiet else [])]


def _end() -> Any:
    """Return what is needed when the command has ended, and not before."""
    return import_module("oomdoctor.cli.runs.last_words")


def _say(line: str) -> None:
    """Write a line to standard error, where there is one."""
    with suppress(OSError):
        os.write(2, f"oomdoctor: {line}\n".encode("utf-8", "replace"))
