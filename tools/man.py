"""Write the manual pages and the completions of `oomdoctor` from its commands: `python tools/man.py` writes share/, `--check` compares."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from oomdoctor import __version__
from oomdoctor.cli.interfaces.completion import SHELLS, completion_script
from oomdoctor.cli.main import cli

SHARE = Path(__file__).parents[1] / "share"
_COMPLETIONS = {
    "bash": "bash-completion/completions/oomdoctor",
    "zsh": "zsh/site-functions/_oomdoctor",
    "fish": "fish/vendor_completions.d/oomdoctor.fish",
}
"""Where a system looks for the completions of all users, below share/."""
_STATUS = "Exit status:"


def files() -> dict[str, str]:
    """Return each file below share/, and its text."""
    pages = {f"man/man1/{name.replace(' ', '-')}.1": page(context) for name, context in commands()}
    return pages | {_COMPLETIONS[shell]: completion_script(shell) for shell in SHELLS}


def commands(context: click.Context | None = None) -> Iterator[tuple[str, click.Context]]:
    """Yield each command and the commands of it, by the words that call them."""
    context = context or click.Context(cli, info_name="oomdoctor", terminal_width=200, max_content_width=200)
    yield context.command_path, context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from commands(click.Context(command, parent=context, info_name=name, terminal_width=200, max_content_width=200))


def page(context: click.Context) -> str:
    """Return the manual page of a command."""
    command, name = context.command, context.command_path.replace(" ", "-")
    about = [[first.strip() for first in part] for part in paragraphs(command.help or "")]
    said = [" ".join(part) for part in about if part[0] != "\b"]
    shown = [part[1:] for part in about if part[0] == "\b"]
    statuses = [text for text in said if text.startswith(_STATUS)]
    lines = [
        f'.TH "{name.upper()}" "1" "" "oomdoctor {__version__}" "oomdoctor"',
        ".SH NAME",
        f"{roff(name)} \\- {roff(said[0].rstrip('.'))}",
        ".SH SYNOPSIS",
        f"\\fB{roff(context.command_path)}\\fR {roff(' '.join(command.collect_usage_pieces(context)))}",
        ".SH DESCRIPTION",
    ]
    for text in said:
        lines += [] if text in statuses else [".PP", roff(text)]
    lines += _options(context)
    lines += _commands(context)
    for text in statuses:
        lines += [".SH EXIT STATUS", roff(text.removeprefix(_STATUS).strip())]
    for heading, *rest in shown:
        lines += [f".SH {roff(heading.rstrip(':').upper())}", ".nf", *map(roff, rest), ".fi"]
    return "\n".join(lines) + "\n"


def paragraphs(text: str) -> list[list[str]]:
    """Return the paragraphs of a help text, each as its lines; one that begins with \\b keeps its breaks."""
    return [part.split("\n") for part in re.split(r"\n\s*\n", text.strip("\n"))]


def roff(text: str) -> str:
    """Return a line as roff shows it: nothing in it is a request or an escape."""
    line = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text.replace("\\", "\\e").replace("-", "\\-"))
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _options(context: click.Context) -> list[str]:
    records = [
        record
        for option in context.command.get_params(context)
        if (record := isinstance(option, click.Option) and option.get_help_record(context))
    ]
    lines = [".SH OPTIONS"] if records else []
    for names, text in records:
        lines += [".TP", f"\\fB{roff(names)}\\fR", roff(text)]
    return lines


def _commands(context: click.Context) -> list[str]:
    if not isinstance(context.command, click.Group):
        return []
    lines = [".SH COMMANDS"]
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        if command is not None:
            lines += [
                ".TP",
                f"\\fB{roff(f'{context.command_path}-{name}'.replace(' ', '-'))}\\fR(1)",
                roff(command.get_short_help_str(200)),
            ]
    return lines


def main() -> None:
    """Write what is not as it should be; with --check say it and end with 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    asked, made = parser.parse_args(), files()
    there = {str(path.relative_to(SHARE)): path for path in SHARE.rglob("*") if path.is_file()}
    stale = [name for name in made if name not in there or there[name].read_text(encoding="utf-8") != made[name]]
    left = [name for name in there if name not in made]
    if asked.check:
        sys.exit("\n".join(["not as the commands say (python tools/man.py):", *stale, *left]) if stale or left else 0)
    for name in stale:
        (SHARE / name).parent.mkdir(parents=True, exist_ok=True)
        (SHARE / name).write_text(made[name], encoding="utf-8")
    for name in left:
        there[name].unlink()


if __name__ == "__main__":
    main()
