"""`oomdoctor run -- COMMAND`: run a command, watch it, and say what it died of."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from oomdoctor import __version__
from oomdoctor.api.runs.run import run as run_command
from oomdoctor.record.command.launch import NotStarted
from oomdoctor.record.watch import WatchOptions


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--out", metavar="DIR", help="The evidence folder; the default is a new one in the working directory.")
@click.option(
    "--level",
    type=click.IntRange(0, 2),
    default=1,
    show_default=True,
    help="How much is recorded inside: 0 counters, 1 who holds what, 2 history.",
)
@click.option("--log", metavar="FILE", help="The file that the command's output goes to, where it goes through a pipe.")
@click.option(
    "--print-env",
    type=click.Choice(("shell", "ray")),
    is_flag=False,
    flag_value="shell",
    help="Run nothing; print what brings the recorder into commands that somebody else starts.",
)
@click.option(
    "--retry", type=click.IntRange(0, 20), default=0, help="Try again so often where the diagnosis is sure and a safe fix is left."
)
@click.option("--allow", multiple=True, metavar="ID", help="A fix that --retry may apply though it is not safe (repeatable).")
@click.option("--attempt", type=int, default=1, hidden=True)
@click.option("--quiet", is_flag=True, help="Write nothing on standard error.")
def run(
    command: tuple[str, ...],
    out: str | None,
    level: int,
    log: str | None,
    print_env: str | None,
    retry: int,
    allow: tuple[str, ...],
    attempt: int,
    quiet: bool,
) -> None:
    """Run COMMAND as it would run without us, watch its memory, and say what it died of.

    The command keeps its terminal, streams, signals and exit status. What was seen of it stays in a folder, which
    `oomdoctor diagnose` reads.

    \b
    Examples:
      oomdoctor run -- torchrun --nproc-per-node 8 train.py
      oomdoctor run --level 2 --out evidence -- python train.py
      eval "$(oomdoctor run --print-env --out evidence)"; ./job.sh
      oomdoctor diagnose evidence

    Exit status: that of the command; 127 where there is no such command, 126 where it cannot be run.
    """
    if print_env is not None:
        print(import_module("oomdoctor.api.runs.recorder_environment").recorder_environment(out, level, print_env))
        return
    if not command:
        raise click.UsageError("Missing argument '-- COMMAND...'.")
    options = WatchOptions(out=out, level=level, log=log, attempt=attempt, retries=retry, describe=lambda python: _end().describe(python))
    try:
        launched, watched = run_command(command, options, __version__)
    except NotStarted as error:
        _say(str(error))
        sys.exit(error.status)
    with suppress(Exception):  # whatever fails in us, we end as the command did
        _end().last_words(launched, watched, keep=out is not None, quiet=quiet, say=_say, retries=retry, allowed=allow)
        _end().try_again(launched, watched, _options(level, log, allow, quiet=quiet), retry)
    launched.end(watched.status)


def _options(level: int, log: str | None, allow: tuple[str, ...], *, quiet: bool) -> list[str]:
    """Return the options of an attempt that the next one has, too."""
    allowed = [word for name in allow for word in ("--allow", name)]
    return ["--level", str(level), *(["--log", log] if log else []), *allowed, *(["--quiet"] if quiet else [])]


def _end() -> Any:
    """Return what is needed when the command has ended, and not before."""
    return import_module("oomdoctor.cli.runs.last_words")


def _say(line: str) -> None:
    """Write a line to standard error, where there is one."""
    with suppress(OSError):
        os.write(2, f"oomdoctor: {line}\n".encode("utf-8", "replace"))
