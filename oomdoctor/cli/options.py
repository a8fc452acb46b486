"""Options that several commands have, with the same words in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from oomdoctor.knowledge.tables.likeness import likeness

Command = TypeVar("Command", bound=Callable[..., Any])

_LIKE = 0.4
"""Words that are as like as this may be the same word, mistyped."""
_LONGEST = 200
"""Characters of the sentence that says what a command does."""


class SuggestingGroup(click.Group):
    """A group that says which command was meant by one that it does not have."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, and what is left for it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = self.meant(ctx, args[0])
            if meant is None:
                raise
            raise click.UsageError(f"{error.message} Did you mean `{meant}`?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, each with its whole sentence: click would cut it off at the end of the line."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command is not None])

    def meant(self, ctx: click.Context, word: str) -> str | None:
        """Return the command that is spelled nearly like this; None where none is."""
        near = max(self.list_commands(ctx), key=lambda name: likeness(word.lower(), name), default="")
        return f"{ctx.command_path} {near}" if likeness(word.lower(), near) >= _LIKE else None


RULES = click.option(
    "--rules", type=click.Path(exists=True, file_okay=False), help="Overlay the rules in this folder on the built-in ones."
)
NO_REDACT = click.option("--no-redact", is_flag=True, help="Keep user and host names, paths, addresses and tokens as they are.")
EXIT_ZERO = click.option("--exit-zero", is_flag=True, help="Exit with status 0 even if a memory failure was found.")
FULL = click.option("--full", is_flag=True, help="In a terminal, expand folded sections (the lines with ▸).")
SERIES = click.option(
    "--series",
    multiple=True,
    type=click.Path(exists=True, readable=False),
    metavar="FILE",
    help="Memory over time alongside the logs (repeatable): CSV from nvidia-smi, dmon, pmon, DCGM, wandb, MLflow, TensorBoard, "
    "samples.jsonl.",
)
SNAPSHOT = click.option(
    "--snapshot",
    multiple=True,
    type=click.Path(exists=True, readable=False),
    metavar="FILE",
    help="A memory snapshot of the run alongside the logs (repeatable, one file per rank): shows what was using GPU memory.",
)
MACHINE = click.option(
    "--env",
    default="auto",
    show_default=True,
    metavar="auto|here|none|FILE",
    help="The run's machine: this one if it agrees with the log, this one, none, or a file that describes it.",
)
STORE = click.option(
    "--store",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Where the rows are stored (default: in the cache, the last triage).",
)
GPUS = click.option("--gpus", type=click.IntRange(1, 100_000), help="Number of cards.")
MODEL = click.option("--model", help="Name of a known model, or a folder or file with its config.json.")
MODEL_OF_CONFIG = click.option(
    "--model", help="The model if the config does not name a known one: a name, or a folder with its config.json."
)
HUB = click.option("--hub", is_flag=True, help="Fetch the config.json of an unknown model (from HF_ENDPOINT, otherwise huggingface.co).")
SERVER_VERSION = click.option(
    "--server-version", metavar="VERSION", help="The release of vLLM or SGLang (0.8.5) if no file names it. Default: the newest."
)


def config_option(help_: str) -> Callable[[Command], Command]:
    """Return `--config`, a file that must be there, as often as there are files."""
    return click.option("--config", "-c", multiple=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE", help=help_)


def format_option(formats: Sequence[str], what: str) -> Callable[[Command], Command]:
    """Return `--format` with these choices; `what` is what has the form."""
    return click.option(
        "--format", "-f", "format_", type=click.Choice(formats), default="terminal", show_default=True, help=f"Format of the {what}."
    )


def output_option(what: str) -> Callable[[Command], Command]:
    """Return `--output`, the file for `what`."""
    return click.option("--output", "-o", type=click.Path(dir_okay=False), help=f"Write the {what} to this file.")


def language_option(of: str = "") -> Callable[[Command], Command]:
    """Return `--lang`; `of` says whose language it is (` of the report`)."""
    return click.option("--lang", type=click.Choice(["en", "zh"]), help=f"Language{of} (default: the locale's).")
