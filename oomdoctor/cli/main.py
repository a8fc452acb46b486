"""The command line `oomdoctor`: its commands, each in the file of its name, loaded when it is called."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from oomdoctor import __version__
from oomdoctor.cli.options import SuggestingGroup
from oomdoctor.errors import OomdoctorError

COMMANDS = {
    "run": "Run a command, watch its memory, and say what it died of.",
    "diagnose": "Say whether memory ran out, what failed first, and what to change.",
    "report": "Write an issue: message, figures, versions, settings, what is missing.",
    "estimate": "Say what a run takes of a card, part by part, and whether it fits.",
    "plan": "Say what to change so that a run fits its cards, the smallest change first.",
    "check": "Say before a run whether its config is right, and whether it fits the cards.",
    "fix": "Write what a diagnosis and the complaints about a config ask for into the files.",
    "env": "Say what this machine, its cards and its torch are, and what is wrong with them.",
    "compare": "Say what changed between two runs or machines that matters for memory.",
    "snapshot": "Say from a memory snapshot who held what when memory ran out, and what grows.",
    "triage": "Say of folders of logs which jobs died of memory, and which of them are the same.",
    "verdict": "Say in one line and an exit status whether a restart can get past a memory failure.",
    "bugs": "List the known memory bugs and changed defaults of releases.",
    "explain": "Explain a problem, a fix or a message like a page of a handbook.",
    "rules": "List, show, test, start and print rules.",
    "web": "Open the page that does this in the browser of this machine.",
    "mcp": "Serve oomdoctor's tools to an agent (Model Context Protocol).",
    "completion": "Print what a shell needs to complete commands and options.",
}

_MODULES = {
    "run": "runs.run",
    "snapshot": "runs.snapshot",
    "triage": "fleet.triage",
    "verdict": "fleet.verdict",
    "web": "web.web",
    "mcp": "interfaces.mcp",
    "completion": "interfaces.completion",
}
"""The modules of those that do not stand beside this file."""
_INTERRUPTED = 130
_BROKEN_PIPE = 141
"""What shells report of a program that SIGINT or SIGPIPE ended: 128 and the number of the signal."""


class _Commands(SuggestingGroup):
    """A group that imports a command's module only when it is used, so that starting stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        """Load a command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"oomdoctor.cli.{_MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's interface
        """Write the list of commands from `COMMANDS`, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; where its reader has gone away, it ends as quietly as it would by SIGPIPE (click makes a 1 of it)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            sys.exit(_BROKEN_PIPE)

    def meant(self, ctx: click.Context, word: str) -> str | None:
        """Return what was meant where the log itself stands in the place of the command; else the nearest command."""
        if word == "-" or os.path.exists(word) or os.path.splitext(word)[1] or "/" in word:
            return f"oomdoctor diagnose {word if word.isprintable() else repr(word)}"
        return super().meant(ctx, word)


def _tell_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's interface
    if not value or ctx.resilient_parsing:
        return
    pack = import_module("oomdoctor.knowledge.pack").load_pack()
    click.echo(f"oomdoctor {__version__} (rules {pack.version}: {pack.size} messages, {len(pack.problems)} problems)")
    ctx.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", "-V", is_flag=True, expose_value=False, is_eager=True, callback=_tell_version, help="Show the version and exit.")
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
    """Run the command line and end with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    _leave(execute())


def execute(arguments: Sequence[str] | None = None) -> int:
    """Run a command (default: that of this process) and return its status: 2 with a clear line for wrong use, 130 for Ctrl-C."""
    status: object
    try:
        status = cli.main(arguments, prog_name="oomdoctor", standalone_mode=False)
        _flush()
    except OomdoctorError as error:
        status = _complain(error.lines, 2)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        status = _complain(("interrupted",), _INTERRUPTED)
    except OSError as error:
        # Commands tell of the files that they read and write; what is left, and has no name, is the place where their text goes.
        if error.filename is not None:
            raise
        status = _complain((f"cannot write to standard output: {(error.strerror or str(error)).lower()}",), 2)
    except SystemExit as end:
        status = end.code
    return status if isinstance(status, int) else 0


def _complain(lines: Iterable[str], status: int) -> int:
    import_module("oomdoctor.cli.output").complain(lines)
    return status


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _leave(status: int) -> NoReturn:
    """End the process without taking it apart object by object, which is a tenth of the time of a short run."""
    with suppress(OSError, ValueError):
        _flush()
    os._exit(status)
