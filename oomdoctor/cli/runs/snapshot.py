"""`oomdoctor snapshot`: what a memory snapshot of PyTorch tells."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor import __version__
from oomdoctor.api.runs.snapshot import SnapshotReport
from oomdoctor.api.runs.snapshot import snapshot as explain_snapshots
from oomdoctor.cli.options import NO_REDACT, RULES, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError
from oomdoctor.report.runs.snapshot import compose
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.runs.snapshot import convert_snapshot
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import parse_size

_MOST_CARDS = 64
FORMATS = ("terminal", "markdown", "json", "html")


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@format_option(FORMATS, "answer")
@output_option("answer")
@language_option()
@RULES
@click.option("--card", metavar="SIZE", help="The memory of each card (80GiB); also shows how much other processes use.")
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 even if something was found.")
@click.option("--full", is_flag=True, help="Expand folded sections.")
@NO_REDACT
def snapshot(
    files: tuple[str, ...],
    format_: str,
    output: str | None,
    lang: str | None,
    rules: str | None,
    card: str | None,
    exit_zero: bool,
    full: bool,
    no_redact: bool,
) -> None:
    """Show from memory snapshots what was holding memory when it ran out, why the request did not fit, and what is growing.

    FILE is a file written by `torch.cuda.memory._dump_snapshot`; with several ranks, pass one file per rank. Nothing in a file is
    executed.

    \b
    Examples:
      oomdoctor snapshot snapshot.pickle
      oomdoctor snapshot rank*.pickle --format html -o memory.html
      oomdoctor snapshot snapshot.pickle --format json

    Exit status: 0 nothing found, 1 something found, 2 could not run, or nothing found in the readable part of a truncated file.
    """
    report = explain_snapshots(files, rules=rules, totals=_totals(card))
    wording = Wording(lang or locale_language(os.environ))
    write(render(report, format_, wording, redact=not no_redact, full=full, to_terminal=output is None), output)
    if report.findings:
        sys.exit(0 if exit_zero else 1)
    if any(file.is_cut for file in report.files):
        sys.exit(2)


def _totals(card: str | None) -> dict[int, int]:
    """Return the bytes of each card that a snapshot can name. Raise UsageError where a size is none."""
    size = None if card is None else parse_size(card)
    if card is not None and not size:
        raise UsageError(f"--card {card}: not a size; write it as 80GiB")
    return {} if size is None else dict.fromkeys(range(_MOST_CARDS), size)


def render(report: SnapshotReport, format_: str, wording: Wording, *, redact: bool, full: bool, to_terminal: bool) -> str:
    """Return the answer as text."""
    if format_ == "json":
        return json_text(convert_snapshot(report, wording, __version__), redact=redact)
    document = compose(report, wording, __version__, is_page=format_ == "html")
    return show(document, format_, to_terminal=to_terminal, full=full, redact=redact)
