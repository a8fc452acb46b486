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
    "run": "Run a command, watch its memory, and report why it died.",
    "diagnose": "Find out whether memory ran out, what failed first, and what to change.",
    "report": "Write an issue: message, figures, versions, settings, missing information.",
    "estimate": "Estimate the GPU memory a run needs, part by part, and whether it fits.",
    "plan": "Show what to change so that a run fits, smallest change first.",
    "check": "Check a config before a run, and whether the run fits the cards.",
    "fix": "Apply fixes from a diagnosis and config checks to the files.",
    "env": "Describe this machine, its cards and its torch, and any problems with them.",
    "compare": "Show changes between two runs or machines that affect memory.",
    "snapshot": "Show from a memory snapshot what held memory and what is growing.",
    "triage": "Find the jobs that ran out of memory in folders of logs, and group them.",
    "verdict": "Report whether a restart can get past a memory failure.",
    "bugs": "List known memory bugs and changed defaults of releases.",
    "explain": "Explain a problem, a fix or a message, as in a handbook.",
    "rules": "List, show, test, create and export rules.",
    "web": "Open the web page in this machine's browser.",
    "mcp": "Serve oomdoctor's tools to an agent (Model Context Protocol).",
    "completion": "Print the shell completion script.",
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
    """Find out from what a failed run left behind which memory ran out, what failed first, why, and what to change.

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
