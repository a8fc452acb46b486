"""`oomdoctor bugs`: the known memory bugs and changed defaults of releases."""

from __future__ import annotations

import os

import click

from oomdoctor import __version__
from oomdoctor.api.bugs import bugs as known_bugs
from oomdoctor.cli.options import RULES, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.report.handbook.bugs import compose_bugs
from oomdoctor.report.wire.bugs import convert_bugs
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

FORMATS = ("terminal", "markdown", "json")


@click.command()
@click.argument("named", metavar="[PACKAGE[==VERSION]|FILE]", nargs=-1)
@format_option(FORMATS, "list")
@output_option("list")
@language_option(" of the list")
@RULES
def bugs(named: tuple[str, ...], format_: str, output: str | None, lang: str | None, rules: str | None) -> None:
    """List the known memory bugs and changed defaults of releases: symptoms, affected releases, and workarounds.

    PACKAGE==VERSION lists those of one release, PACKAGE all of a program, and FILE (pip freeze, conda list or collect_env output,
    - for standard input) those of everything installed. Without arguments, the programs are listed.

    \b
    Examples:
      oomdoctor bugs
      oomdoctor bugs vllm==0.16.0
      oomdoctor bugs deepspeed trl==0.14.0
      pip freeze | oomdoctor bugs -

    Exit status: 0, or 2 if nothing by that name is known.
    """
    listing = known_bugs(named, rules=rules)
    wording = Wording(lang or locale_language(os.environ))
    if format_ == "json":
        write(json_text(convert_bugs(listing, wording, __version__)), output)
        return
    write(show(compose_bugs(listing, wording, __version__), format_, to_terminal=output is None, full=True), output)
