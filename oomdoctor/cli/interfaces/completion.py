"""`oomdoctor completion`: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from oomdoctor.cli.output import write

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
VARIABLE = "_OOMDOCTOR_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print the shell script that completes commands, options and values.

    \b
    Examples:
      source <(oomdoctor completion bash)
      oomdoctor completion zsh > "${fpath[1]}/_oomdoctor"
      oomdoctor completion fish > ~/.config/fish/completions/oomdoctor.fish
    """
    write(completion_script(shell), None)


def completion_script(shell: str) -> str:
    """Return the script for a shell of `SHELLS`, as click writes it."""
    return SHELLS[shell](click.Group("oomdoctor"), {}, "oomdoctor", VARIABLE).source().rstrip() + "\n"
