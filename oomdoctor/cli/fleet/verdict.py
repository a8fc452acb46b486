"""`oomdoctor verdict`: one line and one exit code for what decides about a restart."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor.api.fleet.verdict import SCHEMES, exit_code, restart_verdict
from oomdoctor.cli.options import RULES, format_option, language_option
from oomdoctor.cli.output import complain, locale_language, write
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.triage.restart_line import convert, line
from oomdoctor.report.triage.row_text import redact_line
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

_LONGEST = 1000


@click.command()
@click.argument("logs", metavar="LOGS...", nargs=-1, required=True)
@click.option("--before", metavar="LOG", multiple=True, help="A log of the start before (repeatable): what failed there too comes again.")
@click.option("--exit-codes", type=click.Choice(SCHEMES), default="plain", show_default=True, help="Whose exit status to end with.")
@format_option(("terminal", "json"), "verdict")
@language_option()
@RULES
def verdict(logs: tuple[str, ...], before: tuple[str, ...], exit_codes: str, format_: str, lang: str | None, rules: str | None) -> None:
    """Report in one line whether restarting a job can get past its memory failure, with an exit status for launchers.

    LOGS are all logs of one job, its folder, or - for standard input.

    \b
    Exit status:
      plain  0 memory does not rule out a restart, 1 something must change first, 2 could not run or read, 3 unknown
      nvrx   93 do not restart, 0 otherwise (ft_launcher of NVIDIA Resiliency Extension)
      job    42 do not restart, 0 otherwise (podFailurePolicy of a Kubernetes Job)

    93 and 42 are for a failure that is certain and comes again: settings that are refused before the run, a request above the whole
    card, while the model is loaded, at the first step, or at the same step as before. In doubt, and where a log cannot be read,
    they stay away. A wrong use ends with 2.
    """
    row = restart_verdict(logs, before=before, redact=redact_line, rules=rules)
    complain(f"{file.path}: {file.why}" for file in row.unreadable)
    code = exit_code(row, exit_codes)
    if format_ == "json":
        write(json_text(convert(row, exit_codes, code)), None)
    else:
        write(clean_line(line(row, Wording(lang or locale_language(os.environ))), _LONGEST) + "\n", None)
    sys.exit(code)
