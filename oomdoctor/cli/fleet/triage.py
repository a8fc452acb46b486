"""`oomdoctor triage`: folders of job logs, and what stands in the rows made of them; a command's file is loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from oomdoctor.cli.options import SuggestingGroup

_MODULES = {
    "logs": "logs",
    "mails": "people",
    "merge": "logs",
    "metrics": "watching",
    "notify": "watching",
    "report": "report",
    "show": "show",
    "sql": "sql",
    "users": "people",
    "warnings": "watching",
}
"""Command -> the module that it stands in."""
_HELP = {"help_option_names": ["-h", "--help"]}


class _LogsOrCommand(SuggestingGroup):
    """A group whose first word is a command of it, or else a path: then it is `logs`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `logs` before paths and options of it."""
        if args and args[0] not in (*_MODULES, *_HELP["help_option_names"]):
            args = ["logs", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of the commands, in the order of the help."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        """Load a command; None where there is none of that name."""
        if cmd_name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f"oomdoctor.cli.fleet.{_MODULES[cmd_name]}"), cmd_name)
        return command


@click.group(cls=_LogsOrCommand, context_settings=_HELP)
def triage() -> None:
    """Find out which jobs in folders of logs ran out of memory, which memory it was, what failed first, and which failures are the same.

    \b
    Examples:
      oomdoctor triage /var/log/jobs
      oomdoctor triage logs/ --records sacct.psv -o rows.jsonl
      oomdoctor triage show 1
      oomdoctor triage report --html -o triage.html
      oomdoctor triage sql 'SELECT user, count(*) FROM jobs GROUP BY user'

    `oomdoctor triage PATHS` is `oomdoctor triage logs PATHS`; write ./show for a folder with the name of a command.
    """
