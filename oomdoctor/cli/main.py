"""The command line `oomdoctor`: its commands, each in the file of its name, loaded when it is called."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from oomdoctor import __version__
from oomdoctor.errors import OomdoctorError

COMMANDS = {
    "diagnose": "Say whether memory ran out, what failed first, and what to change.",
    "report": "Write an issue: message, figures, versions, settings, what is missing.",
    "estimate": "Say what a run takes of a card, part by part, and whether it fits.",
    "plan": "Say what to change so that a run fits its cards, the smallest change first.",
    "check": "Say before a run whether its config is right, and whether it fits the cards.",
    "fix": "Write what a diagnosis and the complaints about a config ask for into the files.",
    "env": "Say what this machine, its cards and its torch are, and what is wrong with them.",
    "compare": "Say what changed between two runs or machines that matters for memory.",
    "explain": "Explain a problem, a fix or a message like a page of a handbook.",
    "rules": "List, show, test, start and print rules.",
}


_COLLECT_AFTER = 50_000
"""Objects between two searches for circular garbage: a short process makes little of it, and searching takes 3 % of its time."""


class _Commands(click.Group):
    """A group that imports a command's module only when it is used, so that starting stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        """Load a command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"oomdoctor.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's interface
        """Write the list of commands from `COMMANDS`, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="oomdoctor", message="%(prog)s %(version)s")
def cli() -> None:
    """From what a dead run left behind to what ran out of memory, where first, why, and what to change.

    \b
    Examples:
      oomdoctor diagnose train.log
      oomdoctor diagnose logs/ --lang zh
      kubectl logs trainer-0 | oomdoctor diagnose - --format markdown

    Nothing is sent anywhere; torch and a GPU are not needed.
    """


def main() -> NoReturn:
    """Run the command line; wrong use ends with status 2 and a clear line."""
    gc.set_threshold(_COLLECT_AFTER)
    try:
        cli.main(prog_name="oomdoctor", standalone_mode=True)
    except OomdoctorError as error:
        import_module("oomdoctor.cli.output").complain(error.lines)
        _leave(2)
    except SystemExit as end:
        if isinstance(end.code, int):
            _leave(end.code)
        raise
    _leave(0)


def _leave(status: int) -> NoReturn:
    """End the process without taking it apart object by object, which is a tenth of the time of a short run."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        sys.exit(status)
    os._exit(status)
