"""Run a command and end as it did: what `oomdoctor run` does once its options are known."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from oomdoctor import __version__
from oomdoctor.api.runs.run import run
from oomdoctor.cli.runs.run_options import RunOptions
from oomdoctor.record.command.launch import NotStarted
from oomdoctor.record.evidence_place import NotOurs
from oomdoctor.record.options import WatchOptions


def run_watched(given: RunOptions) -> NoReturn:
    """Run the command, say what it died of, and end this process as it ended."""
    if given.allow and (unknown := _unknown_fix(given.allow)) is not None:
        _say(unknown)
        sys.exit(2)
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
    except NotOurs as error:
        _say(str(error))
        sys.exit(2)
    with suppress(Exception):  # whatever fails in us, we end as the command did
        if watched is not None:
            keep = given.out is not None and watched.record.rank is None
            _end().last_words(launched, watched, keep=keep, quiet=given.quiet, say=_say, retries=given.retry, allowed=given.allow)
            if not keep:
                import_module("oomdoctor.record.old_runs").remove_old_runs()
            _end().try_again(launched, watched, _of_each_attempt(given), given.retry)
    launched.end(launched.wait())


def _unknown_fix(allowed: Sequence[str]) -> str | None:
    """Return what is wrong with a name behind --allow; None where each is a fix."""
    names = import_module("oomdoctor.knowledge.pack").load_pack().names("fixes")
    name = next((name for name in allowed if name not in names), None)
    if name is None:
        return None
    return f"--allow: no fix is called '{name}'{import_module('oomdoctor.knowledge.yaml_file').did_you_mean(name, names)}"


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
