"""`oomdoctor run -- COMMAND` as a command of click: its help, and what is said where its options are wrong."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import click

from oomdoctor.cli.runs.run_options import OPTIONS, RunOption, RunOptions


def _as_click(option: RunOption) -> click.Option:
    """Return an option as click has it."""
    make = partial(
        click.Option,
        [option.name],
        help=option.help,
        metavar=option.metavar,
        default=option.default,
        show_default=option.shows_default,
        hidden=option.help is None,
    )
    if option.choices:
        return make(type=click.Choice(option.choices), is_flag=False, flag_value=option.choices[0])
    if option.bounds is not None:
        return make(type=click.IntRange(*option.bounds))
    return make(is_flag=True) if option.default is False else make(multiple=isinstance(option.default, tuple))


def _run(command: tuple[str, ...], **given: Any) -> None:
    """Run COMMAND exactly as it would run on its own, watch its memory, and report why it died.

    The command keeps its terminal, streams, signals and exit status. The evidence is kept in a folder that
    `oomdoctor diagnose` can read.

    \b
    Examples:
      oomdoctor run -- torchrun --nproc-per-node 8 train.py
      oomdoctor run --level 2 --out evidence -- python train.py
      eval "$(oomdoctor run --print-env --out evidence)"; ./job.sh
      oomdoctor diagnose evidence

    Exit status: that of the command; 127 if there is no such command, 126 if it cannot be run.
    """
    options = RunOptions(command, **given)
    if options.print_env is not None:
        environment = import_module("oomdoctor.api.runs.recorder_environment").recorder_environment
        print(environment(options.out, options.level, options.print_env))
        return
    if not command:
        raise click.UsageError("Missing argument '-- COMMAND...'.")
    import_module("oomdoctor.cli.runs.watched").run_watched(options)


run = click.command(
    "run",
    params=[click.Argument(["command"], metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED), *map(_as_click, OPTIONS)],
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)(_run)
