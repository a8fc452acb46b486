"""`oomdoctor mcp`: the tools of oomdoctor for agents, over the Model Context Protocol."""

from __future__ import annotations

import os

import click

from oomdoctor.cli.options import language_option
from oomdoctor.cli.output import locale_language
from oomdoctor.extras import load_extra
from oomdoctor.report.wording.wording import Wording


@click.command()
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="A folder that may be read (repeatable; default: the working directory). Links that lead outside are refused.",
)
@click.option("--allow-write", is_flag=True, help="Also offer apply_fix, which writes to config files and keeps a copy of each.")
@language_option(" of the answers")
def mcp(roots: tuple[str, ...], allow_write: bool, lang: str | None) -> None:
    """Serve oomdoctor's tools to an agent over standard input and output (Model Context Protocol).

    Requires pip install "oomdoctor[mcp]". Nothing is sent anywhere else; without --allow-write, no config is changed.

    \b
    Examples:
      oomdoctor mcp
      oomdoctor mcp --root ~/runs --root /var/log/jobs
      oomdoctor mcp --root . --allow-write

    \b
    In a client's configuration:
      {"mcpServers": {"oomdoctor": {"command": "oomdoctor", "args": ["mcp", "--root", "."]}}}

    Exit status: 0 the client disconnected, 2 could not run.
    """
    load_extra("mcp.server.mcpserver", "mcp", "the server for agents")
    server = load_extra("oomdoctor.mcp.server", "mcp", "the server for agents")
    server.serve(roots, Wording(lang or locale_language(os.environ)), may_write=allow_write)
